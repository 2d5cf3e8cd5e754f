//! The progress line of a long compilation: the kernel, the stage, and the time.
//!
//! The compiler's thread records the current stage; the waiting thread is polled often whether the result is still
//! wanted, and draws the line then.

use std::sync::{Arc, Mutex, PoisonError};

use weft_compiler::{Stage, StageEvent, Watch};
use weft_runtime::progress;

/// The progress of the compilation that a thread waits for.
#[derive(Default)]
struct ProgressState {
    stage: Option<Stage>,
    /// The current work, if it may be shown.
    shown: Option<progress::Progress>,
}

/// The compilation that a thread waits for, if it is one.
pub(super) struct Progress {
    state: Arc<Mutex<ProgressState>>,
    /// Another observer of its stages.
    other: Option<Watch>,
}

/// Takes the line away when it is dropped.
pub(super) struct Begun(Arc<Mutex<ProgressState>>);

impl Progress {
    /// Nothing is compiled yet. `other` observes the stages, too.
    pub(super) fn new(other: Option<Watch>) -> Self {
        Self { state: Arc::default(), other }
    }

    /// Shows the compilation from now on, until the result is dropped.
    pub(super) fn begin(&self, kernel: impl FnOnce() -> String) -> Begun {
        let shown = progress::Progress::of_work(|| format!("compiling {}", kernel()));
        *lock(&self.state) = ProgressState { stage: None, shown };
        Begun(Arc::clone(&self.state))
    }

    /// The observer of the stages.
    pub(super) fn watch(&self) -> Watch {
        let (state, other) = (Arc::clone(&self.state), self.other.clone());
        Arc::new(move |event| {
            if let Some(other) = &other {
                other(event);
            }
            match event {
                StageEvent::Begins(stage) => lock(&state).stage = Some(stage),
                StageEvent::Holds(_) => {}
            }
        })
    }

    /// To be called often.
    pub(super) fn look(&self) {
        // Taken out meanwhile: the line may be Python's to write, which can be interrupted.
        let (stage, mut shown) = {
            let mut state = lock(&self.state);
            (state.stage, state.shown.take())
        };
        if let Some(progress) = &mut shown {
            progress.look(&stage.map(|stage| stage.to_string()).unwrap_or_default());
            lock(&self.state).shown = shown;
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let shown = lock(&self.0).shown.take();
        drop(shown);
    }
}

fn lock(state: &Mutex<ProgressState>) -> std::sync::MutexGuard<'_, ProgressState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
