/* SPDX-License-Identifier: BSD-3-Clause
 *
 * panda2.c - what the interface of Panda 2.0 promises: a program for launched jobs and for the virtual cluster.
 *
 *     panda2 values      messages, fragments, time, sets, values of threads, by themselves
 *     panda2 system      fragments, small data and messages to access points of one process and of sets
 *     panda2 mp          maps with and without handlers, receives on DIRECT_MAP
 *     panda2 rpc         calls, replied at once with the request, or later
 *     panda2 group       two groups and the one of all: joined, sent to, left while others send
 *     panda2 threads     threads that call, and upcalls that wait
 *     panda2 closed      one who is no member sends to a group, which ends the program
 *
 * Each process prints "MODE: process P is right", and in group mode the hash of what it has delivered. */
#include <panda/pan_bg.h>
#include <panda/pan_group.h>
#include <panda/pan_mp.h>
#include <panda/pan_rpc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 20, LONG = 30000 };

static const char *mode;
static int failures, self, size;
static pan_mutex_p lock;
static pan_cond_p change;
static int count;

#define MUST(x)                                                                \
    do {                                                                       \
        if (!(x)) {                                                            \
            printf("%s: process %d, line %d: %s\n", mode, self, __LINE__, #x); \
            failures++;                                                        \
        }                                                                      \
    } while (0)

static void tick(void)
{
    pan_mutex_lock(lock);
    count++;
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

static void await(int n)
{
    pan_mutex_lock(lock);
    while (count < n)
        pan_cond_wait(change);
    pan_mutex_unlock(lock);
}

static pan_msg_p make(int bytes, int first)
{
    pan_msg_p m = pan_msg_create();
    unsigned char *at = pan_msg_push(m, bytes, 1);
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(first + i * 7);
    *(int *)pan_msg_push(m, sizeof(int), alignof(int)) = first;
    *(int *)pan_msg_push(m, sizeof(int), alignof(int)) = bytes;
    return m;
}

/* Returns the number that the message was made with. */
static int check(pan_msg_p m)
{
    int bytes = *(int *)pan_msg_pop(m, sizeof(int), alignof(int));
    int first = *(int *)pan_msg_pop(m, sizeof(int), alignof(int));
    const unsigned char *at = pan_msg_pop(m, bytes, 1);
    for (int i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)(first + i * 7)) {
            MUST(!"the bytes that were sent");
            break;
        }
    MUST(bytes == 0 || pan_msg_look(m, 1, 1) == NULL);
    return first;
}

/* ---- values ---- */

static int released[3];

static void release(pan_msg_p m, void *arg)
{
    ++*(int *)arg;
    pan_msg_clear(m);
}

static void count_release(pan_msg_p m, void *arg) /* keeps the message */
{
    (void)m;
    ++*(int *)arg;
}

static void messages(pan_nsap_p nsap)
{
    pan_msg_p m = make(LONG, 3), whole = pan_msg_create(), copy = pan_msg_create();
    pan_fragment_p kept = pan_fragment_create();
    int n = 0, bytes = 0;
    for (pan_fragment_p f = pan_msg_fragment(m, nsap); f; f = pan_msg_next(m), n++) {
        MUST(!(pan_fragment_flags(f) & PAN_FRAGMENT_FIRST) == (n > 0));
        MUST(pan_fragment_copy(f, kept, 1) == 1 && pan_fragment_length(kept) == pan_fragment_length(f));
        MUST(!(pan_fragment_flags(f) & PAN_FRAGMENT_LAST) == (bytes + pan_fragment_length(f) < LONG));
        bytes += pan_fragment_length(f);
        pan_msg_assemble(whole, kept, 1);
    }
    MUST(n > 1 && bytes >= LONG && pan_msg_next(m) == NULL);
    pan_msg_copy(whole, copy);
    MUST(check(whole) == 3 && check(copy) == 3);
    pan_msg_empty(whole);
    MUST(pan_msg_pop(whole, 8, 8) == NULL);
    MUST(pan_fragment_flags(pan_msg_fragment(whole, nsap)) == (PAN_FRAGMENT_FIRST | PAN_FRAGMENT_LAST));
    MUST(pan_msg_next(whole) == NULL);
    pan_fragment_clear(kept);
    pan_msg_clear(m);
    pan_msg_clear(whole);
    pan_msg_release_push(copy, release, &released[0]);
    pan_msg_release_push(copy, count_release, &released[1]);
    pan_msg_release_push(copy, release, &released[2]);
    pan_msg_release_pop(copy);
    pan_msg_clear(copy); /* only the last function */
    MUST(released[1] == 1 && released[0] == 0);
    pan_msg_clear(copy);
    MUST(released[0] == 1 && released[2] == 0);
}

static void times(void)
{
    pan_time_p a = pan_time_create(), b = pan_time_create();
    unsigned char *marshalled = pan_malloc((size_t)pan_time_size());
    pan_time_fix_t fix;
    long d = 0;
    pan_time_set(a, 1, 600000000);
    pan_time_copy(b, a);
    pan_time_add(a, b);
    MUST(pan_time_cmp(a, b) == 1 && pan_time_cmp(b, a) == -1);
    pan_time_t2fix(a, &fix);
    MUST(fix.t_sec == 3 && fix.t_nsec == 200000000);
    MUST(pan_time_sub_fix_small(b, a, &d) && d == -1600000000);
    pan_time_sub(a, b);
    MUST(pan_time_cmp(a, b) == 0);
    pan_time_mul(a, 4);
    pan_time_div(a, 2);
    pan_time_mulf(a, 0.5);
    MUST(pan_time_t2d(a) > 1.599999 && pan_time_t2d(a) < 1.600001);
    pan_time_marshall(b, marshalled);
    pan_time_unmarshall(a, marshalled);
    MUST(pan_time_cmp(a, b) == 0 && pan_time_cmp(a, pan_time_infinity) == -1 && pan_time_cmp(a, pan_time_zero) == 1);
    pan_time_d2t(a, -0.25);
    pan_time_fix2t(&fix, b);
    pan_time_add(b, a);
    MUST(pan_time_t2d(b) > 2.949999 && pan_time_t2d(b) < 2.950001);
    pan_time_get(a);
    pan_time_d2t(b, 0.002);
    pan_time_add(b, a);
    pan_mutex_lock(lock);
    MUST(pan_cond_timedwait(change, b) == 0);
    pan_mutex_unlock(lock);
    pan_time_get(a);
    MUST(pan_time_cmp(a, b) >= 0);
    pan_free(marshalled);
    pan_time_clear(a);
    pan_time_clear(b);
}

static void sets(void)
{
    pan_pset_p p = pan_pset_create(), q = pan_pset_create();
    unsigned char *marshalled = pan_malloc((size_t)pan_pset_size());
    MUST(pan_pset_isempty(p) && pan_pset_find(p, 0) == -1);
    pan_pset_add(p, 3);
    pan_pset_add(p, 1000);
    MUST(pan_pset_find(p, 0) == 3 && pan_pset_find(p, 4) == 1000 && pan_pset_nr_members(p) == 2);
    pan_pset_marshall(p, marshalled);
    pan_pset_unmarshall(q, marshalled);
    pan_pset_del(q, 3);
    MUST(pan_pset_ismember(p, 3) && !pan_pset_ismember(q, 3) && pan_pset_ismember(q, 1000));
    pan_pset_copy(q, p);
    pan_pset_fill(q);
    MUST(!pan_pset_ismember(p, 3) && pan_pset_nr_members(q) == size && pan_pset_ismember(q, size - 1));
    pan_pset_empty(q);
    MUST(pan_pset_isempty(q));
    pan_free(marshalled);
    pan_pset_clear(p);
    pan_pset_clear(q);
}

static void values(void)
{
    pan_key_p k = pan_key_create(), l = pan_key_create();
    MUST(pan_key_getspecific(l) == NULL);
    pan_key_setspecific(k, &self);
    MUST(pan_key_getspecific(k) == &self && pan_key_getspecific(l) == NULL);
    pan_key_clear(k);
    pan_key_clear(l);
    MUST(pan_thread_setprio(pan_thread_maxprio()) == pan_thread_minprio() &&
         pan_thread_getprio() == pan_thread_maxprio());
    char *text = NULL;
    pan_sys_va_get_params(NULL, "PAN_SYS_statistics", &text, NULL);
    MUST(text && text[0]);
    pan_free(text);
    times();
    sets();
}

/* ---- system ---- */

static pan_nsap_p by_fragments, by_small, by_msg;
static pan_msg_p building[64];

static void on_fragment(pan_fragment_p f)
{
    int from = *(int *)pan_fragment_header(f);
    if (pan_fragment_flags(f) & PAN_FRAGMENT_FIRST)
        building[from] = pan_msg_create();
    pan_msg_assemble(building[from], f, 0);
    if (!(pan_fragment_flags(f) & PAN_FRAGMENT_LAST))
        return;
    MUST(check(building[from]) == from);
    pan_msg_clear(building[from]);
    tick();
}

static void on_small(void *data)
{
    const int *word = data;
    MUST(word[0] >= 0 && word[0] < size && word[1] == word[0] * 11);
    tick();
}

static void on_msg(pan_msg_p m)
{
    int from = check(m);
    pan_msg_clear(m);
    pan_msg_p answer = make(8, size);
    if (from < size)
        pan_comm_unicast_msg(from, answer, by_msg); /* an upcall sends */
    pan_msg_clear(answer);
    tick();
}

static void system_layer(void)
{
    pan_pset_p all = pan_pset_create();
    pan_pset_fill(all);
    for (int i = 0; i < ROUNDS; i++) {
        pan_msg_p m = make(i % 4 ? i * 90 : LONG, self);
        for (pan_fragment_p f = pan_msg_fragment(m, by_fragments); f; f = pan_msg_next(m)) {
            *(int *)pan_fragment_header(f) = self;
            if (i % 2)
                pan_comm_multicast_fragment(all, f);
            else
                for (int p = 0; p < size; p++)
                    pan_comm_unicast_fragment(p, f);
        }
        int word[2] = {self, self * 11};
        pan_comm_multicast_small(all, by_small, word);
        pan_comm_unicast_small((self + 1) % size, by_small, word);
        pan_comm_multicast_msg(all, m, by_msg);
        pan_msg_clear(m);
        await((i + 1) * (4 * size + 1)); /* fragments, small data, messages of all; answers of all */
    }
    pan_pset_clear(all);
}

/* ---- message passing ---- */

static int open_map, handled_map;

static void on_mp(int map, pan_msg_p m)
{
    int *entry = pan_msg_pop(m, sizeof(int), alignof(int)), to = entry[0];
    MUST(map == handled_map);
    int from = check(m);
    pan_msg_clear(m);
    (void)pan_mp_send_message(from, to, make(64, from), MODE_ASYNC);
}

static void message_passing(void)
{
    const int next = (self + 1) % size;
    pan_msg_p in = pan_msg_create(), second = pan_msg_create();
    for (int i = 0; i < ROUNDS; i++) {
        pan_msg_p m = make(i * 37, i);
        (void)pan_mp_send_message(next, open_map, m, MODE_SYNC);
        int entry = pan_mp_send_message(next, open_map, m, MODE_SYNC2);
        pan_mp_finish_send(entry);
        MUST(pan_mp_poll_send(entry) == 1);
        pan_msg_clear(m);
        int first = pan_mp_receive_message(open_map, in, MODE_SYNC2);
        (void)pan_mp_receive_message(open_map, second, MODE_SYNC);
        pan_mp_finish_receive(first);
        MUST(check(in) == i && check(second) == i);
        first = pan_mp_receive_message(DIRECT_MAP, in, MODE_SYNC2);
        m = make(i, self);
        *(int *)pan_msg_push(m, sizeof(int), alignof(int)) = first;
        (void)pan_mp_send_message(next, handled_map, m, MODE_ASYNC);
        while (i % 2 && !pan_mp_poll_receive(first))
            continue;
        if (i % 2 == 0)
            pan_mp_finish_receive(first);
        MUST(check(in) == self);
    }
    pan_msg_clear(in);
    pan_msg_clear(second);
}

/* All but one come to their end at once. They still handle what that one sends them later, and it gets their
 * answers. */
static void late(void)
{
    if (self != 0)
        return;
    pan_msg_p in = pan_msg_create();
    pan_time_p until = pan_time_create(), pause = pan_time_create();
    pan_time_get(until);
    pan_time_set(pause, 0, 30000000);
    pan_time_add(until, pause);
    pan_mutex_lock(lock);
    while (pan_cond_timedwait(change, until) != 0)
        continue;
    pan_mutex_unlock(lock);
    for (int to = 1; to < size; to++) {
        int entry = pan_mp_receive_message(DIRECT_MAP, in, MODE_SYNC2);
        pan_msg_p m = make(to, self);
        *(int *)pan_msg_push(m, sizeof(int), alignof(int)) = entry;
        (void)pan_mp_send_message(to, handled_map, m, MODE_ASYNC);
        pan_mp_finish_receive(entry);
        MUST(check(in) == self);
    }
    pan_time_clear(until);
    pan_time_clear(pause);
    pan_msg_clear(in);
}

/* ---- calls ---- */

static pan_upcall_p held[4096];
static pan_msg_p held_request[4096];
static int helds, replies_released;

static void on_call(pan_upcall_p upcall, pan_msg_p request)
{
    int how = *(int *)pan_msg_pop(request, sizeof(int), alignof(int));
    if (how % 3 == 0) { /* the request is the reply */
        pan_rpc_reply(upcall, request);
    } else if (how % 3 == 1) {
        int from = check(request);
        pan_msg_clear(request);
        pan_msg_p reply = make(how * 50, from);
        pan_msg_release_push(reply, release, &replies_released);
        pan_rpc_reply(upcall, reply);
    } else {
        pan_mutex_lock(lock);
        held[helds] = upcall;
        held_request[helds++] = request;
        pan_cond_broadcast(change);
        pan_mutex_unlock(lock);
    }
    tick();
}

/* Replies to what was held back. */
static void settle(void)
{
    pan_mutex_lock(lock);
    int n = helds;
    helds = 0;
    pan_mutex_unlock(lock);
    for (int i = 0; i < n; i++)
        pan_rpc_reply(held[i], held_request[i]);
}

static void calls(void)
{
    for (int i = 0; i < ROUNDS; i++)
        for (int p = 0; p < size; p++) {
            int how = (i + p) % 2 + (i % 4 == 0 ? 600 : 3 * i);
            if (p == self)
                continue;
            pan_msg_p request = make(how * 20, self), reply;
            *(int *)pan_msg_push(request, sizeof(int), alignof(int)) = how;
            pan_rpc_trans(p, request, &reply);
            MUST(check(reply) == self);
            pan_msg_clear(reply);
            pan_msg_clear(request);
        }
    const int due = ROUNDS * (size - 1);
    await(due);
    /* Process 0's last call is held back by its server, whose main program replies. */
    if (self == 0 && size > 1) {
        pan_msg_p request = make(9, 5), reply;
        *(int *)pan_msg_push(request, sizeof(int), alignof(int)) = 2;
        pan_rpc_trans(1, request, &reply);
        MUST(check(reply) == 5);
        pan_msg_clear(reply);
        pan_msg_clear(request);
    } else if (self == 1) {
        await(due + 1);
        settle();
    }
}

/* ---- groups ---- */

static unsigned long hash = 1;
static pan_msg_p sent_last;
static int own_by_pointer, in_late;

static void remember(pan_msg_p m, int what)
{
    int number = check(m);
    own_by_pointer += m == sent_last;
    if (count < size * (ROUNDS + ROUNDS / 4)) /* what comes later is of those who go on */
        hash = (hash ^ (unsigned long)(what + number)) * 0x100000001b3u;
    pan_msg_clear(m);
    tick();
}
static void on_red(pan_msg_p m)
{
    remember(m, 1000);
}
static void on_blue(pan_msg_p m)
{
    remember(m, 2000);
}
static void on_all(pan_msg_p m)
{
    remember(m, 3000);
}
static void on_late(pan_msg_p m)
{
    (void)check(m);
    pan_msg_clear(m);
    pan_mutex_lock(lock);
    in_late++;
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

static void groups(void)
{
    char red[] = "red", blue[] = "blue", late[] = "late";
    pan_group_p r = pan_group_join(red, on_red), b = pan_group_join(blue, on_blue), l;
    pan_group_await_size(r, size);
    pan_group_await_size(b, size);
    for (int i = 0; i < ROUNDS; i++) {
        pan_group_send(i % 2 ? r : b, make(i % 5 ? i * 30 : LONG, self));
        if (i % 4 == 0) {
            pan_msg_p m = make(i, self);
            int entry = pan_bg_send_message(m, i % 8 ? BG_MODE_SYNC : BG_MODE_SYNC2);
            if (i % 8 == 0)
                pan_bg_finish_send(entry);
            pan_msg_clear(m);
        }
    }
    await(size * (ROUNDS + ROUNDS / 4));
    printf("group: process %d has %016lx\n", self, hash);
    sent_last = make(7, self);
    pan_group_send(r, sent_last);
    await(size * (ROUNDS + ROUNDS / 4) + size);
    MUST(own_by_pointer >= 1);
    /* A late member receives what is sent after it joined; a member that left receives nothing more. */
    l = pan_group_join(late, on_late);
    pan_group_send(l, make(1, self));
    pan_group_await_size(l, size);
    const int before_that = size * (ROUNDS + ROUNDS / 4) + size;
    for (int i = 1; i <= 3; i++) {
        (void)pan_bg_send_message(make(0, self), BG_MODE_ASYNC);
        await(before_that + i * size); /* what all have sent until here is delivered */
        MUST(in_late >= 1 && in_late <= size + (self == 0 && i > 2));
        if (i == 1 && self != 0)
            pan_group_leave(l);
        if (i == 2 && self == 0)
            pan_group_send(l, make(1, 0));
    }
    if (self == 0)
        pan_group_leave(l);
    pan_group_clear(l);
    pan_group_leave(b);
    pan_group_clear(b);
    pan_group_leave(r);
    pan_group_clear(r);
}

/* ---- threads ---- */

static pan_key_p key;

static void caller(void *arg)
{
    int me = *(int *)arg;
    pan_key_setspecific(key, arg);
    MUST(pan_thread_setprio(me % 5) == 3);
    for (int i = 0; i < ROUNDS; i++) {
        pan_msg_p request = make(i * 13, self), reply;
        *(int *)pan_msg_push(request, sizeof(int), alignof(int)) = i % 2;
        pan_rpc_trans((self + 1 + i % (size - 1)) % size, request, &reply);
        MUST(check(reply) == self);
        pan_msg_clear(reply);
        pan_msg_clear(request);
        pan_thread_yield();
    }
    MUST(pan_key_getspecific(key) == arg && pan_thread_getprio() == me % 5);
    if (me % 2)
        pan_thread_exit();
}

static void in_threads(void)
{
    enum { THREADS = 4 };
    pan_thread_p t[THREADS];
    int number[THREADS];
    key = pan_key_create();
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        t[i] = pan_thread_create(caller, &number[i], 0, 3, 0);
        MUST(t[i] != pan_thread_self());
    }
    for (int i = 0; i < THREADS; i++) {
        pan_thread_join(t[i]);
        pan_thread_clear(t[i]);
    }
    MUST(pan_key_getspecific(key) == NULL);
    (void)pan_bg_send_message(make(0, self), BG_MODE_ASYNC);
    pan_mutex_lock(lock);
    while (in_late < size) /* all have called */
        pan_cond_wait(change);
    pan_mutex_unlock(lock);
    MUST(count == THREADS * ROUNDS);
    pan_key_clear(key);
}

/* ---- all ---- */

static void closed(void)
{
    char name[] = "club";
    pan_group_p g = pan_group_join(name, on_late);
    pan_group_leave(g);
    pan_group_send(g, make(1, 1));
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "values";
    pan_init(&argc, argv);
    pan_mp_init();
    pan_rpc_init();
    pan_group_init();
    pan_bg_init();
    self = pan_my_pid();
    size = pan_nr_platforms();
    lock = pan_mutex_create();
    change = pan_cond_create(lock);
    by_fragments = pan_nsap_create();
    pan_nsap_fragment(by_fragments, on_fragment, sizeof(int), PAN_NSAP_UNICAST | PAN_NSAP_MULTICAST);
    by_small = pan_nsap_create();
    pan_nsap_small(by_small, on_small, 2 * sizeof(int), PAN_NSAP_MULTICAST);
    by_msg = pan_nsap_create();
    pan_nsap_msg(by_msg, on_msg, PAN_NSAP_UNICAST);
    open_map = pan_mp_register_map();
    handled_map = pan_mp_register_map();
    pan_mp_register_async_receive(handled_map, on_mp);
    pan_rpc_register(on_call);
    pan_bg_register(strcmp(mode, "threads") == 0 ? on_late : on_all);
    pan_start();
    if (strcmp(mode, "values") == 0)
        values(), messages(by_fragments);
    else if (strcmp(mode, "system") == 0)
        system_layer();
    else if (strcmp(mode, "mp") == 0)
        message_passing();
    else if (strcmp(mode, "late") == 0)
        late();
    else if (strcmp(mode, "rpc") == 0)
        calls();
    else if (strcmp(mode, "group") == 0)
        groups();
    else if (strcmp(mode, "threads") == 0)
        in_threads();
    else if (strcmp(mode, "closed") == 0)
        closed();
    pan_end();
    if (strcmp(mode, "rpc") == 0)
        MUST(replies_released > 0 || size == 1);
    pan_nsap_clear(by_fragments);
    pan_nsap_clear(by_small);
    pan_nsap_clear(by_msg);
    pan_cond_clear(change);
    pan_mutex_clear(lock);
    if (!failures)
        printf("%s: process %d is right\n", mode, self);
    return failures != 0;
}
