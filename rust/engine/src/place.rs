//! Where the engine's threads run, and who comes first there.

/// Processors by Linux's numbers, up to 511.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus([u64; 8]);

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = [0; 8];
        for number in numbers {
            if let Some(word) = set.get_mut(number as usize / 64) {
                *word |= 1 << (number % 64);
            }
        }
        Self(set)
    }
}

impl Cpus {
    /// Whether the processor is one of them.
    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Their numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..512).filter(|&number| self.contains(number))
    }
}

/// Lets the calling thread run on these alone. What a system does not grant changes speeds only.
pub(crate) fn stay_on(cpus: &Cpus) {
    #[cfg(target_os = "linux")]
    {
        let mut set = rustix::thread::CpuSet::new();
        let most = rustix::thread::CpuSet::MAX_CPU;
        cpus.iter().map(|cpu| cpu as usize).filter(|&cpu| cpu < most).for_each(|cpu| set.set(cpu));
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = cpus;
}

/// Lets the calling thread step back behind others of the process: one that waits for engines loses
/// half of their time if it has to share its core (H200, 16 cores: 8,900 images/s instead of
/// 16,300), and the one that trains comes first, too.
pub(crate) fn yield_to_others() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        /// About a third of the others' weight, on the scale of nice(1).
        const STEP: i32 = 5;
        let this = Some(rustix::thread::gettid());
        let _ = getpriority_process(this).map(|nice| setpriority_process(this, nice + STEP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_a_set_within_bounds() {
        let cpus: Cpus = [63, 0, 64, 511, 512, u32::MAX, 0].into_iter().collect();
        assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 63, 64, 511]);
        assert!(cpus.contains(64) && !cpus.contains(1) && !cpus.contains(5000));
    }
}
