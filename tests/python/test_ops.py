"""``forebay.ops.decode_image``: libjpeg-turbo's pixels, torch.library's manners."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from forebay import ops
from images import jpeg, photo, pillow_rgb, png


def encoded(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def decoded(data: bytes, **keywords) -> np.ndarray:
    return ops.decode_image(encoded(data), **keywords).permute(1, 2, 0).numpy()


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (17, 33), (100, 75)])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_pixels_are_libjpeg_turbos(size, subsampling, progressive):  # PIX-1
    data = jpeg(photo(*size), subsampling=subsampling, progressive=progressive)
    np.testing.assert_array_equal(decoded(data), pillow_rgb(data))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P", "1"])
def test_t14_png_of_any_mode_becomes_rgb(mode):
    import io

    buffer = io.BytesIO()
    Image.fromarray(photo(20, 30)).convert(mode).save(buffer, "PNG")
    np.testing.assert_array_equal(decoded(buffer.getvalue()), pillow_rgb(buffer.getvalue()))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_t11_orientation(orientation):
    y, x = np.mgrid[0:16, 0:24]
    pixels = np.stack([10 * x, 15 * y, np.zeros_like(x)], axis=2).astype(np.uint8)
    data = jpeg(pixels, quality=95, subsampling=0, orientation=orientation)
    upright = decoded(data)
    assert upright.shape[:2] == ((16, 24) if orientation <= 4 else (24, 16))
    corner = [(1, 0), (230, 0), (229, 225), (0, 226), (1, 0), (0, 226), (229, 225), (230, 0)]
    np.testing.assert_allclose(upright[0, 0, :2], corner[orientation - 1], atol=6)
    assert decoded(data, orientation="ignore").shape[:2] == (16, 24)


def test_t04_the_content_decides_not_the_name():
    data = png(photo(9, 7))
    np.testing.assert_array_equal(decoded(data), photo(9, 7))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", ValueError),
        (b"not an image", ValueError),
        (jpeg(photo(40, 40))[:400], ValueError),
        (jpeg(photo(40, 40))[:-2], ValueError),
        (png(photo(40, 40))[:200], ValueError),
    ],
)
def test_damaged_images_are_value_errors(data, error):
    with pytest.raises(error):
        ops.decode_image(encoded(data) if data else torch.empty(0, dtype=torch.uint8))


@pytest.mark.parametrize(
    "tensor", [torch.zeros(3), torch.zeros(2, 2, dtype=torch.uint8), b"bytes", None]
)
def test_wrong_arguments_are_type_errors(tensor):
    with pytest.raises(TypeError, match="encoded"):
        ops.decode_image(tensor)


def test_wrong_options_are_named():
    data = encoded(jpeg(photo(8, 8)))
    with pytest.raises((ValueError, NotImplementedError), match="mode"):
        ops.decode_image(data, mode="CMYK")
    with pytest.raises(ValueError, match="orientation"):
        ops.decode_image(data, orientation="sideways")
    with pytest.raises(ValueError, match=r"mode must be one of .* got None"):
        ops.decode_image(data, mode=None)
    with pytest.raises(ValueError, match=r"orientation must be .* got True"):
        ops.decode_image(data, orientation=True)


def test_a_strided_input_is_read_right():
    data = jpeg(photo(20, 20))
    spread = torch.zeros(2 * len(data), dtype=torch.uint8)
    spread[::2] = encoded(data)
    try:
        image = ops.decode_image(spread[::2])
    except TypeError as error:
        assert "contiguous" in str(error)
    else:
        assert torch.equal(image, ops.decode_image(encoded(data)))


def test_opcheck():
    torch.library.opcheck(
        torch.ops.forebay.decode_image.default, (encoded(jpeg(photo(12, 10))), "RGB", "apply")
    )


def test_opcheck_of_the_pipelines_ops(make_loader):
    """Their schemas hold. They have no fake kernels: a stream of batches is not traced."""
    loader = make_loader(batch_size=4, num_workers=1)
    next(iter(loader))
    handle = loader._opened().pipeline._handle
    calls = {
        "pipeline_start": (handle, 0, 0),
        "pipeline_next": (handle, 0),
        "pipeline_state": (handle,),
        "pipeline_check_state": (handle, json.dumps(loader.state_dict())),
        "pipeline_feed_wanted": (handle,),
        "pipeline_stats": (handle,),
        "pipeline_describe": (handle,),
        "pipeline_close": (handle,),
        "system_info": (),
        "cuda_report": ([], 0, ""),
    }
    for name, arguments in calls.items():
        torch.library.opcheck(
            getattr(torch.ops.forebay, name).default,
            arguments,
            test_utils=("test_schema", "test_autograd_registration"),
        )


def test_the_result_is_its_own_memory():  # MEM-2
    data = encoded(jpeg(photo(20, 20)))
    first = ops.decode_image(data)
    kept = first.clone()
    data.zero_()
    ops.decode_image(encoded(jpeg(photo(20, 20, seed=1))))
    assert torch.equal(first, kept)
