"""``benches/readme.py``: README's numbers come from the records, and only those."""

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benches" / "readme.py"
README = """# Title
- **{{train_ratio}} times** on {{cores}} cores, {{val_ratio}} for validation
- **1/{{pss_ratio}} of the memory**
<!-- bench:begin -->
of an earlier run
<!-- bench:end -->
end
"""


@pytest.fixture(scope="module")
def readme():
    spec = importlib.util.spec_from_file_location("readme", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(loader, rate, memory):
    return {
        "loader": loader,
        "images_per_s": rate,
        "images_per_cpu_s": rate / 2,
        "pss_mb": memory,
        "first_batch_s": 0.125,
    }


def record(recipe, ratio, cache="warm", torch="2.15.0+cpu", **report):
    own = {"recipe": recipe, "cache": cache, "batch_size": 64, "num_workers": 2}
    own |= {"ratio": {"torch-pil": ratio, "dali": 1.75}, "rounds": [{}] * 9}
    own |= {"peers": {"torch-pil": row("torch-pil", 500, 330), "dali": row("dali", 800, 300)}}
    return {
        "machine": {"cpu": "A processor", "usable_cores": 2, "system": "Linux", "python": "3"},
        "versions": {"torch": torch, "dali": "2.4.0", "forebay": "0.1.0"},
        "data": {"images": 400, "mean_bytes": 109_200, "mean_pixels": 200_700},
        "report": row("forebay", 1400.4, 110) | own | report,
    }


@pytest.fixture
def results(tmp_path):
    for recipe, ratio in (("imagenet-val", 2.5), ("imagenet-train", 2.84)):
        (tmp_path / f"{recipe}.json").write_text(json.dumps(record(recipe, ratio)))
    (tmp_path / "cold.json").write_text(json.dumps(record("imagenet-train", 9.0, cache="cold")))
    (tmp_path / "sweep.json").write_text(json.dumps({"report": {"sweep": {}, "points": []}}))
    return tmp_path


def test_fills_placeholders_and_table(readme, results):
    text = readme.written(README, readme.load(results))
    assert "<!--n:train_ratio-->2.8<!--/n--> times" in text
    assert "<!--n:val_ratio-->2.5<!--/n-->" in text
    assert "1/<!--n:pss_ratio-->3<!--/n-->" in text
    assert "of an earlier run" not in text
    assert "400 images of 109 kB and 0.2 megapixels on average; A processor, 2 cores" in text
    assert "torch 2.15.0, DALI 2.4.0; batches of 64, 2 threads" in text
    assert "Medians of 3 interleaved" in text
    rows = [line for line in text.splitlines() if line.startswith(("| train", "| validation"))]
    assert len(rows) == 6
    assert rows[0].startswith("| train | Forebay | 1,400 |")
    assert rows[1].startswith("| train | DALI, CPU | 800 | 1.75 times |")
    assert rows[2].startswith("| train | DataLoader, Pillow, torchvision | 500 | 2.84 times |")
    assert text.endswith("end\n")


def test_writing_again_changes_nothing_and_new_records_change_numbers(readme, results):
    text = readme.written(README, readme.load(results))
    assert readme.written(text, readme.load(results)) == text
    (results / "imagenet-train.json").write_text(json.dumps(record("imagenet-train", 3.2)))
    assert "<!--n:train_ratio-->3.2<!--/n-->" in readme.written(text, readme.load(results))


def test_recipes_with_other_conditions_say_so(readme, results):
    other = record("multicam", 4.0, batch_size=48)
    other["data"] = {"images": 96, "mean_bytes": 290_000, "mean_pixels": 1_440_000}
    (results / "multicam.json").write_text(json.dumps(other))
    text = readme.written(README, readme.load(results))
    assert "(multicam: 96 images of 290 kB and 1.4 megapixels)" in text
    assert "batches of 64 (multicam: 48)" in text


def test_refuses_what_it_cannot_tell(readme, results, tmp_path):
    records = readme.load(results)
    with pytest.raises(ValueError, match="bench:begin"):
        readme.written("no markers", records)
    with pytest.raises(ValueError, match="multicam_ratio"):
        readme.written(README + "{{multicam_ratio}}", records)
    (results / "twice.json").write_text(json.dumps(record("imagenet-val", 1.0)))
    with pytest.raises(ValueError, match="second"):
        readme.load(results)
    (results / "twice.json").write_text(json.dumps(record("multicam", 1.0, torch="2.14.0")))
    with pytest.raises(ValueError, match="different machines"):
        readme.load(results)
    with pytest.raises(ValueError, match="no warm comparison"):
        readme.load(tmp_path / "none")


def test_check_tells_whether_it_is_up_to_date(readme, results, tmp_path, monkeypatch):
    file = tmp_path / "README.md"
    file.write_text(README)
    words = ["readme.py", "--readme", str(file), "--results", str(results)]
    monkeypatch.setattr("sys.argv", [*words, "--check"])
    assert readme.main() == 1
    monkeypatch.setattr("sys.argv", words)
    assert readme.main() == 0
    monkeypatch.setattr("sys.argv", [*words, "--check"])
    assert readme.main() == 0
