/* SPDX-License-Identifier: BSD-3-Clause
 *
 * helper.c - the thread that makes progress for a program that asked for FI_PROGRESS_AUTO. While the program makes some
 * itself, the thread only looks once in a millisecond whether it still does; else it sleeps until something comes.
 *
 * A program that makes its own progress gets one, too, while a message lies here that it believes to be gone: one that
 * it injected, or an acknowledgement, that could not go at once. It may wait for other things than completions then. */
#include "ofi.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SLEEP_MS = 100 };

static void *help(void *arg)
{
    struct rnl_ofi_domain *d = arg;
    struct pollfd on[2] = {{.fd = -1, .events = POLLIN}, {.fd = d->helper_bell, .events = POLLIN}};
    uint64_t seen = 0;
    while (!atomic_load_explicit(&d->helper_ends, memory_order_acquire)) { /* pairs with the store of its end */
        int ms = 1;
        on[0].fd = -1;
        rnl_ofi_lock(d);
        if (!d->automatic && d->owed == 0) {
            d->helper_over = true;
            rnl_ofi_unlock(d);
            break;
        }
        if (d->rounds == seen) {
            (void)rnl_ofi_progress(d);
            int armed = rnl_arm(d->rnl, &on[0].fd);
            ms = armed == 1                                                                 ? 0
                 : armed < 0 || rnl_ofi_is_linked(&d->busy) || rnl_ofi_is_linked(&d->asked) ? 1
                                                                                            : SLEEP_MS;
        }
        seen = d->rounds;
        rnl_ofi_unlock(d);
        if (ms)
            (void)poll(on, 2, ms);
    }
    return NULL;
}

int rnl_ofi_help(struct rnl_ofi_domain *d)
{
    sigset_t all, before;
    d->helper_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->helper_bell < 0)
        return -errno;
    sigfillset(&all); /* signals are for threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&d->helper, NULL, help, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->helped = error == 0;
    d->helper_over = false;
    if (error)
        close(d->helper_bell);
    return -error;
}

void rnl_ofi_help_end(struct rnl_ofi_domain *d)
{
    if (!d->helped)
        return;
    atomic_store_explicit(&d->helper_ends, true, memory_order_release); /* pairs with the load of the thread */
    (void)eventfd_write(d->helper_bell, 1);
    pthread_join(d->helper, NULL);
    close(d->helper_bell);
    d->helped = false;
}

/* Called by whoever is in a call, and so has the lock if there is one. */
void rnl_ofi_help_owed(struct rnl_ofi_domain *d)
{
    if (d->helped && !d->helper_over)
        return;
    if (!d->locks) { /* FI_THREAD_DOMAIN had none so far: this call gives it back as any other does */
        pthread_mutex_lock(d->lock);
        d->locks = true;
    }
    rnl_ofi_help_end(d);
    atomic_store_explicit(&d->helper_ends, false, memory_order_relaxed); /* the new thread starts after it */
    (void)rnl_ofi_help(d); /* without a thread it goes when the program next makes progress */
}
