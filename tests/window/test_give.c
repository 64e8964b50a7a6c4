/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Descriptors that come from a peer: only what is expected is taken, and only if it is the memory file that was said.
 * */
#include "runnel/meet.h"

#include "endpoint/endpoint.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/must.h"

enum { BYTES = 8192, ROUNDS = 10000 };

static rnl_endpoint *ep[2];
static unsigned peer[2];

static void meet(void)
{
    const struct rnl_options alone = {.size = sizeof alone, .flags = RNL_ALONE};
    struct rnl_peer_info info[2] = {{.state = RNL_PEER_NEW}, {.state = RNL_PEER_NEW}};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rnl_open(&ep[i], &alone), 0);
        assert_int_equal(rnl_introduce(ep[i], pair[i], i ? RNL_ACCEPT : RNL_OFFER, NULL, 0, &peer[i]), 0);
    }
    for (unsigned k = 0; k < ROUNDS && (info[0].state != RNL_PEER_UP || info[1].state != RNL_PEER_UP); k++)
        for (unsigned i = 0; i < 2; i++)
            assert_true(rnl_extract(ep[i], SIZE_MAX) >= 0 && rnl_peer(ep[i], peer[i], &info[i]) == 0);
    assert_int_equal(info[0].state, RNL_PEER_UP);
    assert_int_equal(info[1].state, RNL_PEER_UP);
    close(pair[0]);
    close(pair[1]);
}

static void part(void)
{
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(rnl_close(ep[i]), 0);
}

static int give(uint32_t tag, int fd)
{
    return ep[0]->env->meet->give(ep[0]->env, peer[0], tag, fd);
}

static int expect(uint32_t tag)
{
    return ep[1]->env->meet->expect(ep[1]->env, peer[1], tag);
}

static int take(uint32_t tag, int *fd)
{
    return ep[1]->env->meet->take(ep[1]->env, peer[1], tag, BYTES, fd);
}

static void a_memory_file_that_is_expected_comes(void **state)
{
    int fd = -1, got = -1;
    (void)state;
    meet();
    assert_int_equal(rnl_memfd_new("test", BYTES, F_SEAL_SEAL, &fd), 0);
    assert_int_equal(pwrite(fd, "data", 4, 100), 4);
    assert_int_equal(expect(7), 0);
    assert_int_equal(expect(8), 0);
    assert_int_equal(give(8, fd), 0);
    assert_int_equal(give(7, fd), 0);
    assert_int_equal(take(7, &got), 0);
    char text[4];
    assert_int_equal(pread(got, text, 4, 100), 4);
    assert_memory_equal(text, "data", 4);
    close(got);
    assert_int_equal(take(8, NULL), 0);
    assert_int_equal(take(8, &got), RNL_ERR_ARG);
    close(fd);
    part();
}

/* Makes what must not be mapped, or is refused as -1 where this system has none. */
static int wrong(unsigned which)
{
    int fd = -1;
    switch (which) {
    case 0: /* too short */
        assert_int_equal(rnl_memfd_new("test", BYTES / 2, F_SEAL_SEAL, &fd), 0);
        return fd;
    case 1: /* too long */
        assert_int_equal(rnl_memfd_new("test", BYTES * 2, F_SEAL_SEAL, &fd), 0);
        return fd;
    case 2: /* may be cut */
        fd = memfd_create("test", MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, BYTES), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
        return fd;
    case 3: /* could be sealed against writing later */
        fd = memfd_create("test", MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, BYTES), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
        return fd;
    case 4: /* no memory file */
        return open("/proc/self/exe", O_RDONLY);
    case 5: /* huge pages, which need not be there when they are touched */
        fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_HUGETLB);
        if (fd >= 0 &&
            (ftruncate(fd, 2 << 20) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)) {
            close(fd);
            fd = -1;
        }
        return fd;
    }
    return open("/dev/zero", O_RDWR);
}

static void other_descriptors_are_refused(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 7; which++) {
        int fd = wrong(which), got = -1;
        if (fd < 0)
            continue;
        meet();
        assert_int_equal(expect(1), 0);
        assert_int_equal(give(1, fd), 0);
        const size_t bytes = which == 5 ? 2 << 20 : BYTES;
        assert_int_equal(ep[1]->env->meet->take(ep[1]->env, peer[1], 1, bytes, &got), RNL_ERR_PEER_BROKEN);
        assert_int_equal(got, -1);
        close(fd);
        part();
    }
}

static unsigned open_files(void)
{
    unsigned n = 0;
    for (int i = 0; i < 256; i++)
        n += fcntl(i, F_GETFD) >= 0;
    return n;
}

/* Its sender is broken, and nothing of it stays here. */
static void what_is_not_expected_ends_its_sender(void **state)
{
    struct rnl_peer_info info = {.state = RNL_PEER_UP};
    int fd;
    (void)state;
    meet();
    assert_int_equal(rnl_memfd_new("test", BYTES, F_SEAL_SEAL, &fd), 0);
    unsigned before = open_files();
    assert_int_equal(give(3, fd), 0);
    for (unsigned k = 0; k < ROUNDS && info.state == RNL_PEER_UP; k++) {
        (void)!rnl_wait(ep[1], 1000000);
        assert_int_equal(rnl_peer(ep[1], peer[1], &info), 0);
    }
    assert_int_equal(info.state, RNL_PEER_DEAD);
    assert_int_equal(info.reason, RNL_DEATH_BROKEN);
    assert_true(open_files() <= before);
    close(fd);
    part();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_file_that_is_expected_comes),
        cmocka_unit_test(other_descriptors_are_refused),
        cmocka_unit_test(what_is_not_expected_ends_its_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
