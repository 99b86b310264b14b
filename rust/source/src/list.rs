//! Files named by a list, with labels beside them.

use crate::read::read_file_if;
use crate::{Error, Names};
use forebay_core::ports::{Fault, Heap, HostMemory, RecordSink, Request, Source, Stage};
use forebay_core::state::Fingerprint;
use forebay_core::{DType, Field, Record, Schema, Value};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// One label per file: elements of a common type and shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// Element type.
    pub dtype: DType,
    /// Shape of one label; empty for a scalar.
    pub shape: Vec<usize>,
    /// All labels' elements, row-major, native byte order.
    pub elements: Vec<u8>,
}

impl Labels {
    fn item_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }
}

/// A list of image files.
pub struct FileList {
    root: PathBuf,
    names: Names,
    labels: Option<Labels>,
    schema: Schema,
    fingerprint: u64,
    /// Where files are read to.
    memory: Arc<dyn HostMemory>,
}

impl std::fmt::Debug for FileList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = self.names.len();
        f.debug_struct("FileList")
            .field("root", &self.root)
            .field("files", &files)
            .finish_non_exhaustive()
    }
}

impl FileList {
    /// Files `names`, relative to `root` unless they are absolute, with `labels` in their order.
    ///
    /// # Errors
    /// There is not one label per name.
    pub fn new(root: PathBuf, names: Names, labels: Option<Labels>) -> Result<Self, Error> {
        let mut schema = Schema { fields: vec![Field::image("image")] };
        let mut fingerprint = Fingerprint::default().with(names.bytes());
        for offset in names.offsets() {
            fingerprint = fingerprint.with(&offset.to_le_bytes());
        }
        if let Some(labels) = &labels {
            let want = names.len();
            let item = labels.item_bytes();
            if labels.elements.len() != want * item {
                return Err(Error::Labels { got: labels.elements.len() / item.max(1), want });
            }
            fingerprint = fingerprint.with(&labels.elements);
            let field = Field::label("label");
            schema.fields.push(Field { dtype: labels.dtype, shape: labels.shape.clone(), ..field });
        }
        let (fingerprint, memory) = (fingerprint.value(), Arc::new(Heap));
        Ok(Self { root, names, labels, schema, fingerprint, memory })
    }

    /// Reads files into memory that somebody lends.
    #[must_use]
    pub fn into_memory(self, memory: Arc<dyn HostMemory>) -> Self {
        Self { memory, ..self }
    }

    fn path(&self, index: usize) -> PathBuf {
        self.root.join(OsStr::from_bytes(self.names.get(index)))
    }

    /// The record, unless `admit` refuses its size.
    fn record(&self, index: u64, admit: impl FnOnce(u64) -> bool) -> Result<Option<Record>, Fault> {
        let index = usize::try_from(index).ok().filter(|&index| index < self.names.len());
        let Some(index) = index else {
            let reason = format!("index is past the end of {} files", self.names.len());
            return Err(Fault::new(Stage::Read, reason));
        };
        let Some(bytes) = read_file_if(&self.path(index), &*self.memory, admit)? else {
            return Ok(None);
        };
        let mut values = vec![Value::Encoded(bytes)];
        if let Some(labels) = &self.labels {
            let item = labels.item_bytes();
            values
                .push(Value::Elements(labels.elements[index * item..(index + 1) * item].to_vec()));
        }
        Ok(Some(Record { values }))
    }
}

impl Source for FileList {
    fn len(&self) -> Option<u64> {
        Some(self.names.len() as u64)
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn key(&self, index: u64) -> String {
        match usize::try_from(index) {
            Ok(index) if index < self.names.len() => {
                self.path(index).to_string_lossy().into_owned()
            }
            _ => index.to_string(),
        }
    }

    fn request(&self, requests: &[Request], sink: &Arc<dyn RecordSink>) {
        for request in requests {
            let admit = |bytes| sink.admit(request.token, bytes);
            if let Some(record) = self.record(request.index, admit).transpose() {
                sink.deliver(request.token, record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_core::ports::HostBuffer;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Collect(Mutex<Vec<(u64, Result<Record, Fault>)>>);

    impl RecordSink for Collect {
        fn deliver(&self, token: u64, record: Result<Record, Fault>) {
            self.0.lock().unwrap().push((token, record));
        }
    }

    fn names(list: &[&str]) -> Names {
        let mut names = Names::default();
        for name in list {
            names.push(name.as_bytes());
        }
        names
    }

    fn labels(values: &[i64]) -> Labels {
        let elements = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        Labels { dtype: DType::Int64, shape: vec![], elements }
    }

    #[test]
    fn records_hold_bytes_and_labels_and_missing_files_are_faults() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b c.jpg"), b"bytes").unwrap();
        let list =
            FileList::new(folder.path().into(), names(&["gone", "b c.jpg"]), Some(labels(&[4, 5])));
        let list = list.unwrap();
        let collect = Arc::new(Collect::default());
        let sink: Arc<dyn RecordSink> = Arc::<Collect>::clone(&collect);
        let requests = [(10, 1), (11, 0), (12, 2)].map(|(token, index)| Request { token, index });
        list.request(&requests, &sink);
        let got = collect.0.lock().unwrap();
        let values = &got[0].1.as_ref().unwrap().values;
        assert!(matches!(&values[0], Value::Encoded(bytes) if **bytes == *b"bytes"));
        assert!(matches!(&values[1], Value::Elements(label) if *label == 5_i64.to_ne_bytes()));
        assert_eq!(got[1].1.as_ref().unwrap_err().reason, "no such file");
        assert!(got[2].1.as_ref().unwrap_err().reason.contains("past the end"));
        assert!(list.key(1).ends_with("b c.jpg"));
    }

    /// Lends heap memory, whose every second request it refuses.
    #[derive(Default)]
    struct Lender(Mutex<Vec<usize>>);

    impl HostMemory for Lender {
        fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
            let mut asked = self.0.lock().unwrap();
            asked.push(bytes);
            if asked.len().is_multiple_of(2) {
                return Err(Fault::new(Stage::Decode, "nothing is left to lend"));
            }
            Ok(Box::new(vec![0xEE; bytes]))
        }
    }

    #[test]
    fn files_are_read_into_memory_that_is_lent() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jpg"), b"bytes").unwrap();
        let lender = Arc::new(Lender::default());
        let list = FileList::new(folder.path().into(), names(&["a.jpg"]), None).unwrap();
        let list = list.into_memory(Arc::clone(&lender) as _);
        let record = list.record(0, |bytes| bytes == 5).unwrap().unwrap();
        assert!(matches!(&record.values[0], Value::Encoded(bytes) if **bytes == *b"bytes"));
        let fault = list.record(0, |_| true).unwrap_err();
        assert_eq!(fault, Fault::new(Stage::Read, "nothing is left to lend"));
        assert!(list.record(0, |_| false).unwrap().is_none());
        assert_eq!(*lender.0.lock().unwrap(), [5, 5], "what is not admitted takes no memory");
    }

    #[test]
    fn fingerprints_tell_lists_apart() {
        let of = |list: &[&str], values: &[i64]| {
            FileList::new(PathBuf::new(), names(list), Some(labels(values))).unwrap().fingerprint()
        };
        assert_eq!(of(&["a", "b"], &[0, 1]), of(&["a", "b"], &[0, 1]));
        assert_ne!(of(&["a", "b"], &[0, 1]), of(&["b", "a"], &[0, 1]));
        assert_ne!(of(&["a", "b"], &[0, 1]), of(&["ab", ""], &[0, 1]));
        assert_ne!(of(&["a", "b"], &[0, 1]), of(&["a", "b"], &[0, 2]));
    }

    #[test]
    fn labels_must_match_the_names() {
        let error =
            FileList::new(PathBuf::new(), names(&["a"]), Some(labels(&[1, 2]))).unwrap_err();
        assert_eq!(error.to_string(), "labels: got 2 for 1 paths; pass one label per path");
    }
}
