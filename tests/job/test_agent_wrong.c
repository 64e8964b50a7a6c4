/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The agent, and ranks that join twice, hang up, talk nonsense or do not listen. */
#include "job/played.h"
#include "job/waitfd.h"

#include <sys/resource.h>

static void one_endpoint_a_rank_of_our_version(void **state)
{
    (void)state;
    struct job j = job_of(1);
    unsigned char bytes[RNL_MSG_BYTES_MAX];
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, msg;
    int pair[2], fd;
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    say(j.rank[0].bootstrap, &hello, pair[1]);
    close(pair[1]);
    rnl_agent_step(j.a, now);
    assert_int_equal(hear(pair[0], &msg, &fd), 1);
    assert_int_equal(msg.kind, RNL_MSG_REJECTED);
    assert_int_equal(msg.u.rejected.why, RNL_REJECTED_TWICE);
    assert_int_equal(hear(pair[0], &msg, &fd), -1);
    close(pair[0]);
    /* another version at another door */
    const uint32_t version = 99;
    size_t n = rnl_msg_encode(&hello, bytes);
    memcpy(bytes + 12, &version, sizeof version);
    assert_int_equal(rnl_agent_bootstrap(j.a, 1, &j.rank[1].bootstrap), 0);
    assert_int_equal(rnl_seqpacket_pair(pair), 0);
    assert_int_equal(rnl_seqpacket_send(j.rank[1].bootstrap, bytes, n, &pair[1], 1, 0), 0);
    close(pair[1]);
    rnl_agent_step(j.a, now);
    assert_int_equal(hear(pair[0], &msg, &fd), 1);
    assert_int_equal(msg.u.rejected.why, RNL_REJECTED_VERSION);
    close(pair[0]);
    close(j.rank[1].bootstrap);
    end(&j);
}

static void a_closed_socket_waits_a_little_for_the_exit(void **state)
{
    (void)state;
    struct job j = job_of(3);
    close(j.rank[0].sock);
    close(j.rank[1].sock);
    j.rank[0].sock = j.rank[1].sock = dup(0);
    j.rank[1].sock = dup(0);
    rnl_agent_step(j.a, now);
    hears_nothing(&j.rank[2]);
    assert_true(rnl_agent_deadline_ns(j.a) > now);
    assert_true(rnl_agent_deadline_ns(j.a) < now + 80 * MS);
    rnl_agent_exited(j.a, 0, SIGSEGV, 0, now + 5 * MS);
    assert_int_equal(next_event(&j.rank[2]).detail, SIGSEGV);
    /* rank 1's process lives on without a socket: nobody can reach it any more */
    rnl_agent_step(j.a, rnl_agent_deadline_ns(j.a));
    struct rnl_event e = next_event(&j.rank[2]);
    assert_int_equal(e.rank, 1);
    assert_int_equal(e.why, RNL_DEATH_LEFT);
    struct rnl_agent_death d;
    assert_int_equal(rnl_agent_next_death(j.a, &d), 1);
    assert_int_equal(d.rank, 1);
    assert_int_equal(d.why, RNL_DEATH_LEFT);
    assert_int_equal(rnl_agent_next_death(j.a, &d), 0);
    end(&j);
}

/* Whoever left without having asked for anything may come back, also where its LEAVE and the next HELLO are heard at
 * once. */
static void who_left_at_once_may_come_back(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, leave = {.kind = RNL_MSG_LEAVE}, msg;
    int pair[2], pages[2], fd = -1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rnl_seqpacket_pair(pair), 0);
        say(j.rank[0].sock, &leave, -1);
        say(j.rank[0].bootstrap, &hello, pair[1]);
        close(pair[1]);
        close(j.rank[0].sock);
        rnl_agent_step(j.a, now);
        j.rank[0].sock = pair[0];
        hear_welcome(pair[0], &msg, pages);
        close(pages[0]);
        close(pages[1]);
        hears_nothing(&j.rank[1]); /* nobody died */
    }
    assert_int_equal(ask_segment(j.a, &j.rank[0], 1, 4096, &fd), RNL_SEGMENT_FOUND);
    close(fd);
    say(j.rank[0].sock, &leave, -1); /* now it would be missed */
    rnl_agent_step(j.a, now);
    assert_int_equal(j.rank[1].status->rank[0].state, RNL_RANK_DEAD);
    end(&j);
}

/* A TCP socket told to linger would block whoever closes it last. */
static void a_socket_that_lingers_blocks_nobody(void **state)
{
    (void)state;
    struct job j = job_of(1);
    struct rnl_msg msg = {.kind = RNL_MSG_LEAVE}; /* not for the door */
    struct linger slow = {.l_onoff = 1, .l_linger = 20}, now_is;
    socklen_t n = sizeof now_is;
    int door, tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(tcp >= 0);
    assert_int_equal(setsockopt(tcp, SOL_SOCKET, SO_LINGER, &slow, sizeof slow), 0);
    assert_int_equal(rnl_agent_bootstrap(j.a, 1, &door), 0);
    say(door, &msg, tcp);
    rnl_agent_step(j.a, now);
    assert_int_equal(getsockopt(tcp, SOL_SOCKET, SO_LINGER, &now_is, &n), 0); /* ours is the same socket */
    assert_int_equal(now_is.l_onoff, 1);
    assert_int_equal(now_is.l_linger, 0);
    close(tcp);
    close(door);
    end(&j);
}

static unsigned opened(const struct stat *file, int close_it)
{
    struct stat st;
    unsigned n = 0;
    for (int fd = 3; fd < 256; fd++) {
        if (fstat(fd, &st) < 0 || st.st_ino != file->st_ino || st.st_dev != file->st_dev)
            continue;
        n++;
        if (close_it)
            close(fd);
    }
    return n;
}

/* Its file system may be run by its sender, who need not answer a close. The others are served on. */
static void a_file_from_a_rank_is_not_closed_and_costs_it_its_life(void **state)
{
    (void)state;
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, leave = {.kind = RNL_MSG_LEAVE};
    struct rnl_agent_death d;
    struct stat st;
    int fd = -1;
    for (int joined = 0; joined < 2; joined++) {
        struct job j = job_of(2);
        int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        assert_true(file >= 0 && fstat(file, &st) == 0);
        if (fcntl(file, F_GET_SEALS) >= 0) {
            puts("skip: this program lies in shared memory");
            skip();
        }
        if (joined) /* the kernel drops it: it never was the agent's */
            say(j.rank[0].sock, &leave, file);
        else
            say(j.rank[0].bootstrap, &hello, file);
        say(j.rank[0].bootstrap, &hello, file);
        close(file);
        rnl_agent_step(j.a, now);
        assert_int_equal(rnl_agent_next_death(j.a, &d), 1);
        assert_int_equal(d.rank, 0);
        assert_int_equal(d.why, RNL_DEATH_BROKEN);
        rnl_agent_step(j.a, now);
        assert_true(opened(&st, 0) <= 1); /* no second one: the door is closed */
        assert_true(joined || opened(&st, 0) == 1);
        opened(&st, 1);
        assert_int_equal(next_event(&j.rank[1]).why, RNL_DEATH_BROKEN);
        assert_int_equal(ask_segment(j.a, &j.rank[1], 2, 4096, &fd), RNL_SEGMENT_FOUND);
        close(fd);
        end(&j);
    }
}

static void garbage_costs_only_its_sender(void **state)
{
    (void)state;
    uint64_t x = 1234567;
    for (int round = 0; round < 400; round++) {
        struct job j = job_of(2);
        unsigned char bytes[300];
        int fds[RNL_SEQPACKET_FDS_MAX];
        for (unsigned i = 0; i < RNL_SEQPACKET_FDS_MAX; i++)
            fds[i] = STDIN_FILENO;
        for (int i = 0; i < 6; i++) { /* noise, truncated and damaged messages, strange descriptors */
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            struct rnl_msg msg = {.kind = 1 + (uint32_t)(x >> 8) % 5};
            size_t n = rnl_msg_encode(&msg, bytes);
            for (size_t k = 0; k < sizeof bytes; k++)
                if (x % 3 == 0 || k >= n || (x >> (k % 50)) % 16 == 0)
                    bytes[k] = (unsigned char)((x >> (k % 48)) * 31 + k);
            if (x >> 60 < 4)
                n = (size_t)(x >> 20) % sizeof bytes + 1;
            int to = round % 2 ? j.rank[0].sock : j.rank[0].bootstrap;
            rnl_seqpacket_send(to, bytes, n, fds, (unsigned)(x >> 32) % (RNL_SEQPACKET_FDS_MAX + 1), 0);
            rnl_agent_step(j.a, now);
        }
        struct rnl_msg msg;
        int fd = -1;
        while (hear(j.rank[1].sock, &msg, &fd) == 1) /* what it learnt of rank 0 */
            assert_int_equal(msg.kind, RNL_MSG_EVENT);
        assert_int_equal(ask_segment(j.a, &j.rank[1], 2, 4096, &fd), RNL_SEGMENT_FOUND);
        close(fd);
        end(&j);
    }
}

/* The same, but for certain broken: told to the others and to the launcher. */
static void who_breaks_the_protocol_is_declared_dead(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        struct job j = job_of(2);
        struct rnl_msg msg = {.kind = RNL_MSG_EVENT};
        struct rnl_agent_death d;
        switch (how) {
        case 0: /* the wrong direction */
            say(j.rank[0].sock, &msg, -1);
            break;
        case 1: /* a descriptor with a message that has none */
            msg.kind = RNL_MSG_LEAVE;
            say(j.rank[0].sock, &msg, STDIN_FILENO);
            break;
        case 2: /* a wave that nobody asked for */
            report(&j.rank[0], 5, 0);
            break;
        case 3: /* a segment with itself */
            msg = (struct rnl_msg){.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = 0, .bytes = 4096}};
            say(j.rank[0].sock, &msg, -1);
            break;
        case 4: /* noise at the door */
            assert_int_equal(rnl_seqpacket_send(j.rank[0].bootstrap, "hello?", 6, NULL, 0, 0), 0);
            break;
        case 5: /* a greeting where none belongs */
            msg.kind = RNL_MSG_HELLO;
            say(j.rank[0].sock, &msg, STDIN_FILENO);
            break;
        }
        rnl_agent_step(j.a, now);
        assert_int_equal(rnl_agent_next_death(j.a, &d), 1);
        assert_int_equal(d.rank, 0);
        assert_int_equal(d.why, RNL_DEATH_BROKEN);
        assert_int_equal(next_event(&j.rank[1]).why, RNL_DEATH_BROKEN);
        end(&j);
    }
}

/* Never reads: its answers are not queued without end, and what is said to it arrives in order once it reads. */
static void a_deaf_rank_costs_bounded_memory(void **state)
{
    (void)state;
    struct job j = job_of(2);
    struct rnl_msg msg = {.kind = RNL_MSG_SEGMENT, .u.segment = {.rank = 1, .bytes = 4096}};
    uint32_t sent = 0, before = (uint32_t)descriptors();
    for (int i = 0; i < 20000; i++) {
        sent += rnl_msg_send(j.rank[0].sock, &msg, NULL, 0) == 0;
        rnl_agent_step(j.a, now);
    }
    assert_true(sent < 2000); /* it is not listened to, so its socket is full */
    assert_true((uint32_t)descriptors() < before + 4);
    struct pollfd p = {.fd = rnl_agent_fd(j.a), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0); /* nor is there anything to be done about it */
    rnl_agent_exited(j.a, 2, SIGKILL, 0, now);
    uint32_t heard = 0, deaths = 0;
    while (heard < sent || deaths == 0) {
        int fd = -1, r = hear(j.rank[0].sock, &msg, &fd);
        if (r == 0) {
            rnl_agent_step(j.a, now);
            continue;
        }
        assert_int_equal(r, 1);
        heard += msg.kind == RNL_MSG_REPLY;
        deaths += msg.kind == RNL_MSG_EVENT;
        if (fd >= 0)
            close(fd);
    }
    hears_nothing(&j.rank[0]);
    end(&j);
}

/* Whatever a rank does to its own descriptor and to the doorbells, neither the agent nor another rank blocks. */
static void nobody_blocks_who_raises_a_descriptor(void **state)
{
    (void)state;
    struct job j = job_of(3);
    struct rnl_waitfd wait = RNL_WAITFD_NONE, honest = RNL_WAITFD_NONE;
    struct rnl_bell *bells = j.rank[1].bells;
    assert_int_equal(rnl_waitfd_new(&wait, &bells[1]), 0);
    struct pollfd p = {.fd = wait.epoll, .events = POLLIN};
    alarm(20);                     /* ends this test where the agent blocks for ever */
    for (int i = 0; i < 1000; i++) /* more than the socket takes */
        rnl_waitfd_raise(&honest, &bells[1]);
    rnl_agent_exited(j.a, 2, SIGKILL, 0, now);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_DEATH);
    assert_int_equal(poll(&p, 1, 0), 1);
    for (int i = 0; i < 1000 && poll(&p, 1, 0) == 1; i++)
        rnl_waitfd_drain(&wait);
    assert_int_equal(poll(&p, 1, 0), 0);
    rnl_waitfd_raise(&honest, &bells[1]);
    assert_int_equal(poll(&p, 1, 0), 1);
    rnl_waitfd_drain(&wait);
    atomic_store(&bells[1].waitfd, UINT32_MAX); /* costs wake-ups, and makes nothing readable */
    rnl_agent_exited(j.a, 0, SIGKILL, 0, now);
    assert_int_equal(next_event(&j.rank[1]).kind, RNL_EVENT_DEATH);
    assert_int_equal(poll(&p, 1, 0), 0);
    alarm(0);
    rnl_waitfd_free(&wait);
    rnl_waitfd_free(&honest);
    end(&j);
}

/* A descriptor that finds no room in the agent's table is dropped by the kernel: the rank sees its socket closed, the
 * agent has nothing left to do, and the rank may try again. */
static void an_agent_without_descriptors_does_not_spin(void **state)
{
    (void)state;
    struct job j = job_of(1);
    struct rnl_msg hello = {.kind = RNL_MSG_HELLO}, msg;
    struct rlimit was, none;
    int pair[2], pages[2];
    assert_int_equal(rnl_agent_bootstrap(j.a, 1, &j.rank[1].bootstrap), 0);
    rnl_agent_started(j.a, 1, getpid());
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    for (int full = 1; full >= 0; full--) {
        assert_int_equal(rnl_seqpacket_pair(pair), 0);
        say(j.rank[1].bootstrap, &hello, pair[1]);
        close(pair[1]);
        none = was;
        none.rlim_cur = full ? 0 : was.rlim_cur;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        rnl_agent_step(j.a, now);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        struct pollfd p = {.fd = rnl_agent_fd(j.a), .events = POLLIN};
        assert_int_equal(poll(&p, 1, 0), 0);
        assert_true(rnl_agent_deadline_ns(j.a) > now);
        if (full) {
            assert_int_equal(hear(pair[0], &msg, NULL), -1);
        } else {
            hear_welcome(pair[0], &msg, pages);
            close(pages[0]);
            close(pages[1]);
        }
        close(pair[0]);
    }
    close(j.rank[1].bootstrap);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_endpoint_a_rank_of_our_version),
        cmocka_unit_test(a_closed_socket_waits_a_little_for_the_exit),
        cmocka_unit_test(who_left_at_once_may_come_back),
        cmocka_unit_test(a_socket_that_lingers_blocks_nobody),
        cmocka_unit_test(a_file_from_a_rank_is_not_closed_and_costs_it_its_life),
        cmocka_unit_test(garbage_costs_only_its_sender),
        cmocka_unit_test(who_breaks_the_protocol_is_declared_dead),
        cmocka_unit_test(a_deaf_rank_costs_bounded_memory),
        cmocka_unit_test(nobody_blocks_who_raises_a_descriptor),
        cmocka_unit_test(an_agent_without_descriptors_does_not_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
