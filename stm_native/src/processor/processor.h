/* What the compiler and the core are told. */
#ifndef SPECSTREAM_PROCESSOR_H
#define SPECSTREAM_PROCESSOR_H

#define SS_CACHE_LINE 64

#if defined(__GNUC__)
#define SS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define SS_UNLIKELY(x) (x)
#endif

/* Tells the core that this is a waiting loop. */
static inline void ss_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
