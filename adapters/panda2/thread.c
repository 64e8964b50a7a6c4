/* SPDX-License-Identifier: BSD-3-Clause
 *
 * thread.c - threads with values of their own, and monitors. */
#include "panda2.h"

enum { PRIORITY_MAX = 10 };

struct pan2_thread {
    struct pan2_thread *next; /* of all, but the first */
    pan_thread_func_p f;
    void *arg, *below;
    int priority;
    bool detached;
    void **value; /* by key */
    unsigned values;
};
struct pan2_key {
    unsigned number;
};
struct pan2_mutex {
    void *lock;
};
struct pan2_cond {
    void *signal;
};

static struct pan2_thread first_thread, *threads;
static void *list_lock; /* of threads and keys; made with the first thread */
static unsigned keys;

static void free_thread(struct pan2_thread *t)
{
    free(t->value);
    free(t);
}

static void unlink_thread(const struct pan2_thread *t)
{
    pan2_lock(list_lock);
    for (struct pan2_thread **at = &threads; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    pan2_unlock(list_lock);
}

pan_thread_p pan_thread_self(void)
{
    const void *mine = pan2_thread_mine();
    struct pan2_thread *t = &first_thread;
    if (!mine || !list_lock)
        return t;
    pan2_lock(list_lock);
    for (t = threads; t && t->below != mine;)
        t = t->next;
    pan2_unlock(list_lock);
    return t ? t : &first_thread; /* the daemon's */
}

static void finish(struct pan2_thread *t)
{
    if (!t->detached)
        return;
    unlink_thread(t);
    free_thread(t);
}

static void run(void *arg)
{
    struct pan2_thread *t = arg;
    pan2_lock(list_lock);
    t->below = pan2_thread_mine();
    pan2_unlock(list_lock);
    t->f(t->arg);
    finish(t);
}

pan_thread_p pan_thread_create(pan_thread_func_p func, void *arg, long stacksize, int priority, int detach)
{
    struct pan2_thread *t = pan_calloc(1, sizeof *t);
    if (!list_lock)
        list_lock = pan2_lock_new();
    t->f = func;
    t->arg = arg;
    t->priority = priority;
    t->detached = detach != 0;
    pan2_lock(list_lock);
    t->next = threads;
    threads = t;
    pan2_unlock(list_lock);
    void *below = pan2_thread_new(run, t, stacksize > 0 ? (size_t)stacksize : 0, t->detached);
    if (!below)
        pan2_fail("a thread could not be made: there are none on a virtual cluster, and none before pan_init");
    if (!detach) {
        pan2_lock(list_lock);
        t->below = below; /* run does so, too, but whoever joins may come before it */
        pan2_unlock(list_lock);
    }
    return t;
}

void pan_thread_exit(void)
{
    struct pan2_thread *t = pan_thread_self();
    if (t == &first_thread)
        pan2_fail("pan_thread_exit was called by the first thread, which ends by pan_end");
    finish(t);
    pan2_thread_end();
}

void pan_thread_join(pan_thread_p t)
{
    pan2_thread_wait(t->below);
    unlink_thread(t);
    t->below = NULL;
}

void pan_thread_clear(pan_thread_p t)
{
    free_thread(t);
}

void pan_thread_yield(void)
{
    pan2_thread_give_way();
}

int pan_thread_getprio(void)
{
    return pan_thread_self()->priority;
}

int pan_thread_setprio(int priority)
{
    struct pan2_thread *t = pan_thread_self();
    int before = t->priority;
    t->priority = priority;
    return before;
}

int pan_thread_minprio(void)
{
    return 0;
}

int pan_thread_maxprio(void)
{
    return PRIORITY_MAX;
}

/* ---- values of threads ---- */

pan_key_p pan_key_create(void)
{
    struct pan2_key *k = pan_malloc(sizeof *k);
    k->number = __atomic_fetch_add(&keys, 1, __ATOMIC_RELAXED);
    return k;
}

void pan_key_clear(pan_key_p key)
{
    free(key);
}

void pan_key_setspecific(pan_key_p key, void *ptr)
{
    struct pan2_thread *t = pan_thread_self();
    if (key->number >= t->values) {
        unsigned n = key->number + 8;
        t->value = pan_realloc(t->value, n * sizeof *t->value);
        memset(t->value + t->values, 0, (n - t->values) * sizeof *t->value);
        t->values = n;
    }
    t->value[key->number] = ptr;
}

void *pan_key_getspecific(pan_key_p key)
{
    const struct pan2_thread *t = pan_thread_self();
    return key->number < t->values ? t->value[key->number] : NULL;
}

/* ---- monitors ---- */

pan_mutex_p pan_mutex_create(void)
{
    struct pan2_mutex *m = pan_malloc(sizeof *m);
    m->lock = pan2_lock_new();
    return m;
}

void pan_mutex_clear(pan_mutex_p m)
{
    pan2_lock_free(m->lock);
    free(m);
}

void pan_mutex_lock(pan_mutex_p m)
{
    pan2_lock(m->lock);
}

void pan_mutex_unlock(pan_mutex_p m)
{
    pan2_unlock(m->lock);
}

int pan_mutex_trylock(pan_mutex_p m)
{
    return pan2_trylock(m->lock);
}

pan_cond_p pan_cond_create(pan_mutex_p m)
{
    struct pan2_cond *c = pan_malloc(sizeof *c);
    c->signal = pan2_signal_new(m->lock);
    return c;
}

void pan_cond_clear(pan_cond_p c)
{
    pan2_signal_free(c->signal);
    free(c);
}

void pan_cond_wait(pan_cond_p c)
{
    (void)pan2_signal_wait(c->signal, -1);
}

int pan_cond_timedwait(pan_cond_p c, pan_time_p abstime)
{
    int64_t left = pan2_time_left(abstime);
    return pan2_signal_wait(c->signal, left) ? 1 : 0;
}

void pan_cond_signal(pan_cond_p c)
{
    pan2_signal_one(c->signal);
}

void pan_cond_broadcast(pan_cond_p c)
{
    pan2_signal_all(c->signal);
}
