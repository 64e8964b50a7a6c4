/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix.c - see pmix.h. The job has no launcher of ours, so rank 0 leaves an agent behind: a process that serves all
 * ranks as a launcher would, and ends with the last of them. PMIx says how many ranks there are, and carries where the
 * agent listens and a secret that proves who may come in; what comes then is what always comes, so nothing above knows.
 *
 * The library of PMIx is loaded when it is wanted: programs that `runnel run` starts need none of it. */
#include "job/pmix.h"

#include "base/error.h"
#include "runnel/runnel.h"

#ifndef RNL_HAVE_PMIX
#define RNL_HAVE_PMIX 0
#endif

#if RNL_HAVE_PMIX
#include "base/env.h"
#include "job/agent.h"
#include "job/fds.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECRET = 16, NAME = 32, GUESTS = 16 };
static const char where_key[] = "runnel.agent";
static const uint64_t come_ns = 60000000000; /* for all ranks to come in; they all are in rnl_open */

struct calls {
    pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);
    pmix_status_t (*finalize)(const pmix_info_t *, size_t);
    pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t **);
    pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
    const char *(*text)(pmix_status_t);
};

struct where { /* as it travels */
    unsigned char secret[SECRET];
    char name[NAME]; /* of an abstract socket, `bytes` of it */
    uint32_t bytes;
};
struct knock {
    unsigned char secret[SECRET];
    uint32_t rank;
};

static int load(struct calls *c)
{
    void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL)
        return rnl_fail(RNL_ERR_JOB,
                        "this process was started by a PMIx server, and libpmix.so.2 cannot be loaded: install it, "
                        "start the job with `runnel run`, or unset PMIX_NAMESPACE to run alone");
    const struct {
        const char *name;
        size_t at;
    } wanted[] = {
        {"PMIx_Init", offsetof(struct calls, init)},        {"PMIx_Finalize", offsetof(struct calls, finalize)},
        {"PMIx_Get", offsetof(struct calls, get)},          {"PMIx_Put", offsetof(struct calls, put)},
        {"PMIx_Commit", offsetof(struct calls, commit)},    {"PMIx_Fence", offsetof(struct calls, fence)},
        {"PMIx_Error_string", offsetof(struct calls, text)}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *f = dlsym(lib, wanted[i].name);
        if (f == NULL)
            return rnl_fail(RNL_ERR_JOB, "libpmix.so.2 has no %s: install PMIx 3 or newer", wanted[i].name);
        memcpy((char *)c + wanted[i].at, &f, sizeof f);
    }
    return 0; /* it stays loaded: it has threads */
}

/* ---- the agent ---- */

struct host {
    struct rnl_agent *agent;
    int listener, guest[GUESTS];
    struct where where;
    uint32_t size, came, gone;
    unsigned char had[RNL_JOB_RANKS_MAX]; /* the rank has its door */
};

/* Who knows the secret gets the door of its rank; anybody else, the end of the connection. */
static void serve_guest(struct host *h, int slot)
{
    struct knock k;
    struct rnl_packet p;
    int door, fd = h->guest[slot];
    int e = rnl_packet_receive(fd, &k, sizeof k, 0, &p, 0);
    if (e == -EAGAIN)
        return;
    unsigned char different = 0;
    for (size_t i = 0; e == 0 && i < SECRET; i++)
        different |= k.secret[i] ^ h->where.secret[i];
    if (e == 0 && p.n == sizeof k && !p.cut && different == 0 && k.rank < h->size && !h->had[k.rank] &&
        rnl_agent_door(h->agent, k.rank, &door) == 0) {
        rnl_packet_send(fd, "R", 1, &door, 1, 0);
        close(door);
        h->had[k.rank] = 1;
        h->came++;
    }
    close(fd);
    h->guest[slot] = -1;
}

static void accept_guest(struct host *h)
{
    int fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred who = {.uid = (uid_t)-1};
    socklen_t n = sizeof who;
    int slot = 0;
    if (fd < 0)
        return;
    while (slot < GUESTS && h->guest[slot] >= 0)
        slot++;
    if (slot == GUESTS) { /* those who are here first have said nothing: the oldest goes */
        slot = 0;
        close(h->guest[0]);
        memmove(h->guest, h->guest + 1, (GUESTS - 1) * sizeof h->guest[0]);
        slot = GUESTS - 1;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0 || who.uid != geteuid()) {
        close(fd);
        fd = -1;
    }
    h->guest[slot] = fd;
}

static int wait_ms(const struct rnl_agent *a, uint64_t now, uint64_t until)
{
    uint64_t at = rnl_agent_deadline_ns(a);
    at = at < until ? at : until;
    return at == UINT64_MAX ? -1 : at <= now ? 0 : (int)((at - now) / 1000000 % 60000) + 1;
}

/* Until the last rank is gone: its door has no other end then. */
static void serve(struct host *h)
{
    uint64_t now = rnl_host_now_ns(NULL), until = now + come_ns;
    struct rnl_agent_death d;
    while (rnl_agent_here(h->agent) > 0 || h->listener >= 0) {
        struct pollfd p[GUESTS + 2] = {{.fd = rnl_agent_fd(h->agent), .events = POLLIN},
                                       {.fd = h->listener, .events = POLLIN}};
        for (int i = 0; i < GUESTS; i++)
            p[i + 2] = (struct pollfd){.fd = h->guest[i], .events = POLLIN};
        (void)poll(p, GUESTS + 2, wait_ms(h->agent, now, h->listener >= 0 ? until : UINT64_MAX));
        now = rnl_host_now_ns(NULL);
        for (int i = 0; i < GUESTS; i++)
            if (h->guest[i] >= 0 && p[i + 2].revents)
                serve_guest(h, i);
        if (h->listener >= 0 && p[1].revents)
            accept_guest(h);
        rnl_agent_step(h->agent, now);
        while (rnl_agent_next_death(h->agent, &d))
            ;
        if (h->listener >= 0 && (h->came == h->size || now >= until)) {
            close(h->listener);
            h->listener = -1;
        }
    }
}

static _Noreturn void be_agent(struct host *h, int hold)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_NAME, "runnel-agent");
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (hold != 3) {
        dup3(hold, 3, O_CLOEXEC);
        close(hold);
    }
    h->listener = 3;
    syscall(SYS_close_range, 4u, UINT32_MAX, 0u); /* what the program had open is not ours to keep open */
    struct rnl_agent_options opt = {.size = h->size};
    if (gethostname(opt.host, sizeof opt.host - 1) < 0)
        memcpy(opt.host, "localhost", sizeof "localhost");
    if (getrandom(opt.key, sizeof opt.key, 0) != (ssize_t)sizeof opt.key || rnl_agent_new(&opt, &h->agent) < 0)
        _exit(1);
    for (int i = 0; i < GUESTS; i++)
        h->guest[i] = -1;
    serve(h);
    _exit(0);
}

/* In a process that is nobody's child, so that no wait of the program finds it. 0 or -errno. */
static int start_agent(uint32_t size, struct where *where)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t n = sizeof name;
    struct host *h = calloc(1, sizeof *h);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e = 0;
    memset(where, 0, sizeof *where);
    /* An abstract name that the kernel chooses: nothing is left in a file system. */
    if (h == NULL || fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name.sun_family) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&name, &n) < 0 ||
        getrandom(where->secret, sizeof where->secret, 0) != (ssize_t)sizeof where->secret)
        e = h == NULL ? -ENOMEM : -errno;
    if (e == 0 && n - offsetof(struct sockaddr_un, sun_path) > sizeof where->name)
        e = -ENAMETOOLONG;
    if (e == 0) {
        where->bytes = (uint32_t)(n - offsetof(struct sockaddr_un, sun_path));
        memcpy(where->name, name.sun_path, where->bytes);
        h->size = size;
        h->where = *where;
        pid_t child = fork();
        if (child == 0) {
            if (fork() == 0)
                be_agent(h, fd);
            _exit(0);
        }
        if (child < 0)
            e = -errno;
        while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (fd >= 0)
        close(fd);
    free(h);
    return e;
}

/* ---- the rank ---- */

static int refused(const char *what, const struct calls *c, pmix_status_t s)
{
    return rnl_fail(RNL_ERR_JOB, "the PMIx server of this job does not %s: %s; start the job with `runnel run`", what,
                    c->text(s));
}

static int get_number(const struct calls *c, const pmix_proc_t *job, const char *key, uint32_t *out)
{
    pmix_value_t *v = NULL;
    pmix_status_t s = c->get(job, key, NULL, 0, &v);
    if (s != PMIX_SUCCESS || v->type != PMIX_UINT32)
        return refused("say how large the job is", c, s);
    *out = v->data.uint32;
    free(v);
    return 0;
}

static int exchange(const struct calls *c, const pmix_proc_t *me, uint32_t size, struct where *where)
{
    pmix_proc_t first = *me;
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT}, *got = NULL;
    pmix_info_t info;
    pmix_status_t s = PMIX_SUCCESS;
    first.rank = 0;
    if (me->rank == 0) {
        int e = start_agent(size, where);
        if (e < 0)
            return rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                                  "the agent of the job cannot be started: raise the limits of "
                                  "processes and descriptors (ulimit -u, ulimit -n)");
        value.data.bo.bytes = (char *)where;
        value.data.bo.size = sizeof *where;
        s = c->put(PMIX_GLOBAL, where_key, &value);
        if (s == PMIX_SUCCESS)
            s = c->commit();
    }
    memset(&info, 0, sizeof info);
    memcpy(info.key, PMIX_COLLECT_DATA, sizeof PMIX_COLLECT_DATA);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    if (s == PMIX_SUCCESS)
        s = c->fence(NULL, 0, &info, 1);
    if (s == PMIX_SUCCESS && me->rank != 0) {
        s = c->get(&first, where_key, NULL, 0, &got);
        if (s == PMIX_SUCCESS && (got->type != PMIX_BYTE_OBJECT || got->data.bo.size != sizeof *where))
            s = PMIX_ERR_BAD_PARAM;
        if (s == PMIX_SUCCESS) {
            memcpy(where, got->data.bo.bytes, sizeof *where);
            free(got->data.bo.bytes);
            free(got);
        }
    }
    return s == PMIX_SUCCESS ? 0 : refused("carry where the agent of the job is", c, s);
}

static int fetch_door(const struct where *where, uint32_t rank, int *door)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct knock k = {.rank = rank};
    struct rnl_packet p = {.nfds = 0};
    char answer[4];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), e = fd < 0 ? -errno : 0;
    if (e == 0 && where->bytes > sizeof where->name)
        e = -EINVAL;
    if (e == 0) {
        memcpy(name.sun_path, where->name, where->bytes);
        memcpy(k.secret, where->secret, sizeof k.secret);
        if (connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + where->bytes)) <
            0)
            e = -errno;
    }
    if (e == 0)
        e = rnl_packet_send(fd, &k, sizeof k, NULL, 0, 1);
    if (e == 0)
        e = rnl_packet_receive(fd, answer, sizeof answer, 1, &p, 1);
    if (e == 0 && p.nfds != 1)
        e = -EPROTO;
    if (fd >= 0)
        close(fd);
    explicit_bzero(&k, sizeof k);
    if (e < 0)
        return rnl_fail_errno(RNL_ERR_JOB, -e,
                              "the agent that rank 0 started does not let this rank in: are all ranks "
                              "on one host, and in one network namespace?");
    *door = p.fds[0];
    return 1;
}

static int join(const struct calls *c, int *door)
{
    pmix_proc_t me, job;
    struct where where;
    uint32_t size = 0, local = 0;
    pmix_status_t s = c->init(&me, NULL, 0);
    if (s != PMIX_SUCCESS)
        return refused("let this process in", c, s);
    job = me;
    job.rank = PMIX_RANK_WILDCARD;
    int r = get_number(c, &job, PMIX_JOB_SIZE, &size);
    if (r == 0)
        r = get_number(c, &job, PMIX_LOCAL_SIZE, &local);
    if (r == 0 && (size < 1 || size > RNL_JOB_RANKS_MAX || me.rank >= size))
        r = rnl_fail(RNL_ERR_JOB, "the PMIx server of this job says that it has %u ranks: there can be 1 to %d", size,
                     RNL_JOB_RANKS_MAX);
    if (r == 0 && local != size)
        r = rnl_fail(RNL_ERR_UNSUPPORTED,
                     "%u of the %u ranks of this job are on this host: a job on several hosts is started with `runnel "
                     "run --hosts`; one on one host also with mpirun",
                     local, size);
    if (r == 0)
        r = exchange(c, &me, size, &where);
    if (r == 0)
        r = fetch_door(&where, me.rank, door);
    explicit_bzero(&where, sizeof where);
    c->finalize(NULL, 0); /* all is said; a server takes a process that ends without this for one that failed */
    return r;
}

int rnl_pmix_door(int *door)
{
    struct calls c;
    if (getenv("PMIX_NAMESPACE") == NULL || getenv("PMIX_RANK") == NULL)
        return 0;
    int r = load(&c);
    return r < 0 ? r : join(&c, door);
}
#else
int rnl_pmix_door(int *door)
{
    (void)door;
    return 0;
}
#endif
