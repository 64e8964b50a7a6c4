/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.c - the env of meet.h: events, memory, waiting, life. Its descriptors lie in one epoll instance.
 *
 * Who wakes whom: whatever comes by a descriptor (a greeting, what a daemon says, a byte or a message over the socket
 * of a pair, an end) wakes a process that sleeps in park or in an event loop at once. One that polls is woken by
 * nothing: it looks each 50 us (RNL_LOOK_NS), and each turn while it waits for an introduction itself. Who has sent
 * something over the socket of a pair to a peer that polls sends a message through their memory after it, whose handler
 * looks (rnl_meet_ops.look).
 *
 * For one thread at a time, but for sleeping. In a forked child every operation fails. */
#include "base/error.h"
#include "meet/daemon.h"
#include "meet/meet_internal.h"
#include "ring/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PEERS_MAX = 1023, PEERS = 255, EVENTS = 64 };

/* ---- descriptors ---- */

static void notify(void *arg, uint32_t rank)
{
    (void)rank; /* 0: nobody else is here */
    rnl_meet_notify(arg);
}

static void take(struct meet *m, const struct epoll_event *e)
{
    uint32_t index = (uint32_t)e->data.u64;
    uint64_t count;
    switch ((enum meet_source)(e->data.u64 >> 32)) {
    case MEET_SELF:
        (void)!read(m->self, &count, sizeof count);
        break;
    case MEET_SOCK:
        if (m->slot[index].state == MEET_AWAITING)
            rnl_meet_receive_program(m, index);
        else
            rnl_meet_receive_slot(m, index);
        break;
    case MEET_WATCH:
        rnl_meet_watched(m, index);
        break;
    case MEET_LINK:
        rnl_meet_receive_link(m, index);
        break;
    case MEET_LISTEN:
        rnl_meet_receive_listener(m);
        break;
    }
}

/* Takes in what has come by any descriptor, and does what is due. */
static void look(struct meet *m)
{
    struct epoll_event events[EVENTS];
    if (getpid() != m->owner)
        return;
    m->now_ns = rnl_meet_now(m);
    int n = epoll_wait(m->epoll, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
        take(m, &events[i]);
    if (m->now_ns < m->due_ns)
        return;
    m->due_ns = UINT64_MAX;
    rnl_meet_slots_due(m);
    rnl_meet_links_due(m);
}

static void meet_look(struct rnl_env *env)
{
    look(rnl_meet_of(env));
}

/* Waits until a descriptor is readable. */
static void sleep_until(struct meet *m, uint64_t deadline_ns)
{
    struct pollfd p = {.fd = m->epoll, .events = POLLIN};
    const uint64_t end = deadline_ns < m->due_ns ? deadline_ns : m->due_ns;
    if (m->world) {
        m->world->sleep(&m->env, m->epoll, end);
        return;
    }
    const uint64_t now = rnl_meet_now(m);
    uint64_t ns = end > now ? end - now : 0;
    const struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    (void)ppoll(&p, 1, end == UINT64_MAX ? NULL : &left, NULL);
}

/* ---- events ---- */

/* No segment tells the endpoint of a peer on another host. */
static int next_remote(struct meet *m, struct rnl_event *out)
{
    for (uint32_t i = 1; m->unreported && i < m->env.size; i++) {
        struct meet_slot *s = &m->slot[i];
        if (!s->is_remote || s->state != MEET_UP || s->is_reported)
            continue;
        s->is_reported = true;
        *out = (struct rnl_event){.kind = RNL_EVENT_RETURN, .rank = i, .incarnation = s->incarnation};
        return 1;
    }
    m->unreported = 0;
    return 0;
}

static int next_request(struct meet *m, struct rnl_event *out)
{
    for (uint32_t i = 1; m->requests && i < m->env.size; i++) {
        struct meet_slot *s = &m->slot[i];
        if (s->state != MEET_REQUESTING || s->is_announced)
            continue;
        s->is_announced = true;
        m->requests--;
        *out = (struct rnl_event){.kind = RNL_EVENT_CONNECTION_REQUEST, .rank = i};
        return 1;
    }
    return 0;
}

static int next_event(struct meet *m, struct rnl_event *out)
{
    return rnl_membership_event(m->members, 0, out) || next_remote(m, out) || next_request(m, out);
}

static int meet_event(struct rnl_env *env, struct rnl_event *out)
{
    struct meet *m = rnl_meet_of(env);
    if (next_event(m, out))
        return 1;
    look(m);
    return next_event(m, out);
}

static int meet_close_report(struct rnl_env *env, uint64_t wave, uint64_t activity)
{
    (void)env, (void)wave, (void)activity; /* nobody waits for anybody */
    return 0;
}

/* ---- memory: a segment's number is the rank it is shared with ---- */

/* Takes the memory file that came with the introduction. */
static int make(void *arg, struct rnl_segment *s)
{
    struct meet *m = arg;
    int *fd = &m->slot[s->rank[1]].segment;
    if (*fd < 0) { /* of this process with itself */
        int status = rnl_memfd_new("runnel-self", s->bytes, F_SEAL_SEAL, fd);
        if (status < 0)
            return status;
    }
    s->fd = *fd;
    *fd = -1;
    return 0;
}

static void unmake(void *arg, const struct rnl_segment *s)
{
    (void)arg;
    close(s->fd);
}

static int open_own(struct meet *m, size_t bytes)
{
    struct meet_slot *s = &m->slot[0];
    return s->shared ? 0 : rnl_membership_segment_add(m->members, 0, 0, bytes, &s->shared);
}

static int meet_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct meet *m = rnl_meet_of(env);
    struct meet_slot *s = &m->slot[rank];
    int status = rnl_meet_forked(m);
    if (status == 0 && rank == 0)
        status = open_own(m, bytes);
    if (status < 0)
        return status;
    uint64_t now = rnl_meet_now(m), end = wait_ns < UINT64_MAX - now ? now + wait_ns : UINT64_MAX;
    while (s->state == MEET_GREETING || s->state == MEET_AWAITING || s->state == MEET_REQUESTING) {
        look(m);
        if (s->state == MEET_REQUESTING || (s->state <= MEET_GREETING && rnl_meet_now(m) >= end))
            return rnl_fail(RNL_NO_ROOM, "peer %u has not been introduced yet: try again later", rank);
        if (s->state <= MEET_GREETING)
            sleep_until(m, end);
    }
    if (rank != 0 && (s->state == MEET_FREE || s->state == MEET_LEFT))
        return rnl_fail(RNL_ERR_RANK, "there is no peer %u: nobody has been introduced by this number", rank);
    if (s->is_remote && s->state == MEET_UP)
        return RNL_NO_ROOM; /* nothing is shared with a peer of another host */
    if (!s->shared || s->shared->bytes != bytes)
        return rnl_fail(RNL_ERR_PEER_DEAD, "peer %u is gone: there is no segment to share with it", rank);
    *segment = (int)rank;
    return 0;
}

static int meet_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct meet *m = rnl_meet_of(env);
    size_t all = (size_t)env->size * RNL_SEGMENT_HEAD;
    int head = offset < RNL_SEGMENT_HEAD && bytes <= RNL_SEGMENT_HEAD - offset;
    void *p = MAP_FAILED;
    if (head && !m->heads) { /* side by side, so that one page of page tables serves many peers */
        p = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        m->heads = p == MAP_FAILED ? NULL : p;
    }
    if (!head || m->heads)
        p = mmap(head ? m->heads + (size_t)segment * RNL_SEGMENT_HEAD + offset : NULL, bytes,
                 PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | (head ? MAP_FIXED : 0),
                 m->slot[segment].shared->fd, (off_t)offset);
    if (p == MAP_FAILED)
        return rnl_fail_errno(errno == ENOMEM ? RNL_ERR_NO_MEMORY : RNL_ERR_SYSTEM, errno,
                              "cannot map %zu bytes of a segment at offset %zu: raise the limit of address space "
                              "(ulimit -v) or of mappings (vm.max_map_count)",
                              bytes, offset);
    *at = p;
    return 0;
}

static void meet_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    const struct meet *m = rnl_meet_of(env);
    (void)segment;
    int head = m->heads && (char *)at >= m->heads && (char *)at < m->heads + (size_t)env->size * RNL_SEGMENT_HEAD;
    if (!head ||
        mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        munmap(at, bytes);
}

static void meet_segment_mapped(struct rnl_env *env, int segment)
{
    struct meet *m = rnl_meet_of(env);
    struct meet_slot *s = &m->slot[segment];
    rnl_membership_segment_mapped(m->members, s->shared, 0);
    rnl_membership_segment_close(m->members, s->shared, 0);
    s->shared = NULL;
}

static void meet_segment_close(struct rnl_env *env, int segment)
{
    (void)env, (void)segment; /* one that was not mapped for good may be opened again, and goes with its slot */
}

/* ---- waiting ---- */

static struct rnl_bell *meet_bell_of(struct rnl_env *env, uint32_t rank)
{
    return &rnl_meet_of(env)->bells[rank]; /* nobody else has it: what wakes a peer goes through its socket */
}

/* Wakes the process at the other end; MSG_DONTWAIT holds whatever that process does to the socket. */
static void raise_socket(int fd)
{
    while (send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void raise_slot(struct meet *m, uint32_t rank)
{
    const uint64_t one = 1;
    if (rank == 0)
        (void)!write(m->self, &one, sizeof one);
    else if (m->slot[rank].state == MEET_UP)
        raise_socket(m->slot[rank].sock);
}

static void meet_park(struct rnl_env *env, _Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    if (atomic_load_explicit(word, memory_order_acquire) == expected) /* pairs with rnl_ep_look_again's add */
        sleep_until(rnl_meet_of(env), deadline_ns);
}

static int meet_park_on(struct rnl_env *env, int fd, uint64_t deadline_ns)
{
    const uint64_t due = rnl_meet_of(env)->due_ns;
    return rnl_host_park_on(env, fd, deadline_ns < due ? deadline_ns : due);
}

static void meet_wake(struct rnl_env *env, _Atomic uint32_t *word)
{
    struct meet *m = rnl_meet_of(env);
    raise_slot(m, (uint32_t)((struct rnl_bell *)(void *)word - m->bells));
}

static int meet_fd(struct rnl_env *env)
{
    struct meet *m = rnl_meet_of(env);
    struct rnl_waitfd wait = RNL_WAITFD_NONE;
    if (m->wait.epoll >= 0)
        return m->wait.epoll;
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = rnl_waitfd_new(&wait, env->bell);
    if (status < 0)
        return status;
    status = rnl_waitfd_watch(&wait, m->epoll);
    if (status < 0) {
        rnl_waitfd_free(&wait);
        return status;
    }
    m->wait = wait;
    return wait.epoll;
}

static void meet_fd_drain(struct rnl_env *env)
{
    struct meet *m = rnl_meet_of(env);
    rnl_waitfd_drain(&m->wait);
    look(m);
}

static void meet_fd_until(struct rnl_env *env, uint64_t ns)
{
    const struct meet *m = rnl_meet_of(env);
    rnl_waitfd_until(&m->wait, ns < m->due_ns ? ns : m->due_ns);
}

static void meet_fd_raise(struct rnl_env *env, uint32_t rank)
{
    struct meet *m = rnl_meet_of(env);
    if (rank == 0 && m->wait.epoll >= 0)
        rnl_waitfd_raise(&m->wait, env->bell);
    else if (rank > 0 && rank < env->size)
        raise_slot(m, rank);
}

static int meet_fd_watch(struct rnl_env *env, int fd)
{
    return rnl_waitfd_watch(&rnl_meet_of(env)->wait, fd);
}

/* ---- life ---- */

static void meet_free(struct meet *m)
{
    for (uint32_t i = 1; m->slot && i < m->env.size; i++)
        rnl_meet_close_slot(m, i);
    for (struct meet_service *s = m->services, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    for (struct meet_link *l = m->links, *next; l; l = next) {
        next = l->next;
        rnl_meet_drop_fd(m, &l->sock);
        (void)!rnl_daemon_started(&l->starter);
        free(l);
    }
    if (!m->is_listed)
        free(m->listener);
    rnl_meet_drop_fd(m, &m->listen);
    rnl_meet_table_free(m->table, m->env.size, m->table_fd);
    rnl_waitfd_free(&m->wait);
    rnl_membership_free(m->members);
    rnl_meet_drop_fd(m, &m->self);
    if (m->epoll >= 0)
        close(m->epoll);
    if (m->heads)
        munmap(m->heads, (size_t)m->env.size * RNL_SEGMENT_HEAD);
    free(m->bells);
    rnl_meet_remote_free(m);
    free(m->env.late);
    free(m->slot);
    explicit_bzero(m->token, sizeof m->token);
    free(m);
}

static void meet_close(struct rnl_env *env)
{
    meet_free(rnl_meet_of(env));
}

/* A descriptor is sent before the message that speaks of it, so one that is missing may lie in the socket. */
static int take_given(struct rnl_env *env, uint32_t rank, uint32_t tag, size_t bytes, int *fd)
{
    if (fd && rnl_meet_lacks(rnl_meet_of(env), rank, tag))
        rnl_meet_receive_slot(rnl_meet_of(env), rank);
    return rnl_meet_take(env, rank, tag, bytes, fd);
}

static const struct rnl_meet_ops introductions = {
    .serve = rnl_meet_serve,
    .served = rnl_meet_served,
    .unserve = rnl_meet_unserve,
    .reach = rnl_meet_reach,
    .introduce = rnl_meet_introduce,
    .insert = rnl_meet_insert,
    .address = rnl_meet_address,
    .reserve = rnl_meet_reserve,
    .vouch = rnl_meet_vouch,
    .met = rnl_meet_met,
    .request = rnl_meet_request,
    .reply = rnl_meet_reply,
    .cred = rnl_meet_cred,
    .is = rnl_meet_is,
    .leave = rnl_meet_leave,
    .sides = rnl_meet_sides,
    .give = rnl_meet_give,
    .expect = rnl_meet_expect,
    .take = take_given,
    .release = rnl_meet_release,
    .look = meet_look,
};

static int32_t meet_pid_of(struct rnl_env *env, uint32_t rank)
{
    struct rnl_cred cred;
    if (rank == env->rank && !rnl_meet_of(env)->world)
        return getpid();
    return env->meet->cred(env, rank, &cred) == 0 ? cred.pid : 0;
}

const struct rnl_env_ops rnl_meet_real_ops = {
    .size = sizeof rnl_meet_real_ops,
    .pid_of = meet_pid_of,
    .now_ns = rnl_host_now_ns,
    .random = rnl_host_random,
    .yield = rnl_host_yield,
    .park = meet_park,
    .wake = meet_wake,
    .heavy_fence = rnl_host_heavy_fence,
    .sense_load = rnl_host_sense_load,
    .sense_fence = rnl_host_sense_fence,
    .segment_open = meet_segment_open,
    .segment_map = meet_segment_map,
    .segment_unmap = meet_segment_unmap,
    .segment_mapped = meet_segment_mapped,
    .segment_close = meet_segment_close,
    .event = meet_event,
    .close_report = meet_close_report,
    .disconnect = rnl_meet_disconnect,
    .fd = meet_fd,
    .fd_drain = meet_fd_drain,
    .fd_until = meet_fd_until,
    .fd_raise = meet_fd_raise,
    .close = meet_close,
    .park_on = meet_park_on,
    .fd_watch = meet_fd_watch,
    .rank_address = rnl_meet_remote_address,
    .alternate_address = rnl_meet_remote_alternate,
    .liveness = rnl_meet_remote_liveness,
    .is_unwatched = rnl_meet_remote_is_unwatched,
};

static int make_tables(struct meet *m)
{
    uint32_t size = m->env.size;
    bool *is_here = calloc(size, sizeof *is_here);
    m->slot = calloc(size, sizeof *m->slot);
    m->bells = aligned_alloc(RNL_BELL_BYTES, (size_t)size * RNL_BELL_BYTES);
    int status = is_here && m->slot && m->bells ? 0 : RNL_ERR_NO_MEMORY;
    if (status == 0) {
        const struct rnl_membership_options opt = {.size = size,
                                                   .is_here = is_here,
                                                   .leads = true,
                                                   .arg = m,
                                                   .notify = notify,
                                                   .make = make,
                                                   .release = unmake};
        is_here[0] = true;
        memset(m->bells, 0, (size_t)size * RNL_BELL_BYTES);
        for (uint32_t i = 0; i < size; i++)
            m->slot[i].sock = m->slot[i].watch = m->slot[i].segment = -1;
        m->slot[0].state = MEET_UP;
        status = rnl_membership_new(&opt, &m->members);
    }
    free(is_here);
    if (status == 0)
        status = rnl_membership_join(m->members, 0, 1);
    return status < 0 ? rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an endpoint of up to %u peers", size - 1) : 0;
}

static int make_descriptors(struct meet *m)
{
    m->epoll = epoll_create1(EPOLL_CLOEXEC);
    m->self = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int e = m->epoll < 0 || m->self < 0 ? -errno : rnl_meet_watch(m, m->self, MEET_SELF, 0);
    return e < 0 ? rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                                  "cannot make the descriptors of an endpoint: raise their limit (ulimit -n)")
                 : 0;
}

int rnl_meet_env_in(const struct rnl_options *opt, struct rnl_meet_world *world, struct rnl_env **out)
{
    uint32_t peers = opt && opt->size >= offsetof(struct rnl_options, peers) + sizeof opt->peers ? opt->peers : 0;
    if (peers > PEERS_MAX)
        return rnl_fail(RNL_ERR_ARG, "rnl_options.peers is %u: an endpoint alone has at most %d at a time", peers,
                        PEERS_MAX);
    struct meet *m = calloc(1, sizeof *m);
    if (!m)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an endpoint");
    m->world = world;
    m->env.ops = world ? world->ops : &rnl_meet_real_ops;
    m->env.meet = &introductions;
    m->env.bell_of = meet_bell_of;
    m->env.size = 1 + (peers ? peers : PEERS);
    m->env.incarnation = 1;
    m->env.event_seq = &m->event_seq;
    m->owner = getpid();
    m->own_uid = geteuid();
    m->epoll = m->self = m->listen = m->table_fd = -1;
    m->wait = RNL_WAITFD_NONE;
    m->due_ns = UINT64_MAX;
    for (size_t i = 0; i < sizeof m->address; i += sizeof(uint64_t)) {
        const uint64_t random = m->env.ops->random(&m->env);
        memcpy(m->address + i, &random, sizeof random);
    }
    int status = make_tables(m);
    if (status == 0)
        status = make_descriptors(m);
    if (status < 0) {
        meet_free(m);
        return status;
    }
    m->env.bell = &m->bells[0];
    if (world) {
        memcpy(m->env.host, world->host, sizeof m->env.host);
        m->env.facts = world->facts;
    } else {
        m->table_fd = rnl_meet_table_new(m->env.size, &m->table);
        if (gethostname(m->env.host, sizeof m->env.host) < 0)
            memcpy(m->env.host, "localhost", sizeof "localhost");
        rnl_host_facts(&m->env.facts);
    }
    m->env.host[sizeof m->env.host - 1] = '\0';
    m->env.facts.keep_going = 1;
    m->env.facts.must_look = 1;
    *out = &m->env;
    return 0;
}

int rnl_meet_env(const struct rnl_options *opt, struct rnl_env **out)
{
    return rnl_meet_env_in(opt, NULL, out);
}

struct rnl_meet_world *rnl_meet_world_of(struct rnl_env *env)
{
    return rnl_meet_of(env)->world;
}

const unsigned char *rnl_meet_name_of(struct rnl_env *env)
{
    return rnl_meet_of(env)->address;
}

int rnl_meet_looks_at(struct rnl_env *env, uint64_t *due_ns)
{
    *due_ns = rnl_meet_of(env)->due_ns;
    return rnl_meet_of(env)->epoll;
}
