/* Our handler among those of others.
 *
 * A signal has one handler in a process, and others want it too: Python's faulthandler, a profiler,
 * a debugger's agent. The custom is that who comes later keeps what stood there before, and passes
 * on what is not his. Ours does: a fault that is no operator's goes to the handler that was there
 * before, or is left to the system, and the process ends as it would have ended without us.
 *
 * Who comes after us stands before us, and does not know that a worker's fault is harmless:
 * faulthandler reports it as fatal. So we look at the start of every job, and where a newcomer
 * stands, step in front of him and pass on to him. He in turn believes that we stood behind him:
 * faulthandler puts us back before it raises the signal again, and if we then asked it once more,
 * neither would ever end. Hence we stand in several places in the line, each a function of its own
 * (a *level*) with its own successor. A newcomer who steps back installs the level that he found
 * when he came, and that one passes on to whoever was there before him.
 *
 * Each newcomer takes a level. When all are taken, one who has come before gets his old level: he has
 * stepped back meanwhile, or he would still stand where he was. Another one we leave in front. */
#include "processor/signal_chain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "processor/fault.h"

enum { SIGNALS = 4, LEVELS = 8 };

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

/* Changed under the mutex, and only for a level that is about to be installed. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction successors[LEVELS][SIGNALS];
static int levels_used[SIGNALS];

static void leave_to_the_system(int signal, const siginfo_t *info)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigemptyset(&standard.sa_mask);
    sigaction(signal, &standard, NULL);
    /* What an instruction raised it raises again when we return, and a core dump shows it. What
     * somebody sent has to be sent again; it arrives when we return. */
    if (info->si_code <= 0)
        raise(signal);
}

static void pass_on(const struct sigaction *successor, int signal, siginfo_t *info, void *context)
{
    if ((successor->sa_flags & SA_SIGINFO) != 0)
        successor->sa_sigaction(signal, info, context);
    else if (successor->sa_handler == SIG_DFL ||
             (successor->sa_handler == SIG_IGN && info->si_code > 0)) /* no fault can be ignored */
        leave_to_the_system(signal, info);
    else if (successor->sa_handler != SIG_IGN)
        successor->sa_handler(signal);
}

static void handle(int level, int signal, siginfo_t *info, void *context)
{
    int error = errno;
    if (!ss_fault_bring_back(signal, info, context))
        for (int i = 0; i < SIGNALS; i++)
            if (signals[i] == signal)
                pass_on(&successors[level][i], signal, info, context);
    errno = error;
}

#define LEVEL(number)                                                                              \
    static void level_##number(int signal, siginfo_t *info, void *context)                         \
    {                                                                                              \
        handle(number, signal, info, context);                                                     \
    }
LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)
#undef LEVEL

static void (*const handlers[LEVELS])(int, siginfo_t *, void *) = {
    level_0, level_1, level_2, level_3, level_4, level_5, level_6, level_7};

/* The level that is installed, or -1 for a stranger. */
static int level_of(const struct sigaction *action)
{
    if ((action->sa_flags & SA_SIGINFO) != 0)
        for (int level = 0; level < LEVELS; level++)
            if (action->sa_sigaction == handlers[level])
                return level;
    return -1;
}

/* The level that has stood before this stranger already, or -1. */
static int level_before(const struct sigaction *stranger, int i)
{
    for (int level = LEVELS - 1; level > 0; level--)
        if (successors[level][i].sa_handler == stranger->sa_handler)
            return level;
    return -1;
}

void ss_signals_take_front(void)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction current;
        if (sigaction(signals[i], NULL, &current) != 0)
            continue;
        int level = level_of(&current);
        if (level >= 0) {
            levels_used[i] = level + 1; /* who stood before a higher one has stepped back */
            continue;
        }
        level = levels_used[i] < LEVELS ? levels_used[i] : level_before(&current, i);
        if (level < 0)
            continue;
        /* Without SA_NODEFER: what a successor raises again arrives when we have returned, at the
         * level that he has put back. On the alternate stack: the other one may be used up. */
        struct sigaction ours = {.sa_sigaction = handlers[level],
                                 .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&ours.sa_mask);
        successors[level][i] = current; /* before the handler can look */
        if (sigaction(signals[i], &ours, NULL) == 0 && levels_used[i] < LEVELS)
            levels_used[i]++;
    }
    pthread_mutex_unlock(&mutex);
}
