// Names for clang's thread-safety analysis; nothing under other compilers.
//
// A member that a lock protects says BERTH_GUARDED_BY(mu_), a private function that expects the
// lock held says BERTH_REQUIRES(mu_), and clang's -Wthread-safety then refuses the code that
// forgets. Macros, because attributes can only be switched off by the preprocessor.
#pragma once

#if defined(__clang__)
#define BERTH_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define BERTH_THREAD_ATTRIBUTE(x)
#endif

#define BERTH_CAPABILITY(what) BERTH_THREAD_ATTRIBUTE(capability(what))
#define BERTH_SCOPED_CAPABILITY BERTH_THREAD_ATTRIBUTE(scoped_lockable)
#define BERTH_GUARDED_BY(mu) BERTH_THREAD_ATTRIBUTE(guarded_by(mu))
#define BERTH_REQUIRES(...) BERTH_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define BERTH_EXCLUDES(...) BERTH_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define BERTH_ACQUIRE(...) BERTH_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define BERTH_RELEASE(...) BERTH_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
