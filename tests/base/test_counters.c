/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_counters.c - counters pages: found and read from outside, and not trusted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/counters.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rnl_counters *page_of(uint32_t rank)
{
    struct rnl_counters *c = NULL;
    assert_int_equal(rnl_counters_new(rank, 8, "prog", 42, &c), 0);
    return c;
}

static void a_new_page_is_zero_but_for_its_head(void **state)
{
    const char *name, *text;
    uint64_t value;
    unsigned n = 0;
    (void)state;
    struct rnl_counters *c = page_of(3);
    assert_int_equal(c->magic, RNL_COUNTERS_MAGIC);
    assert_int_equal(c->version, RNL_COUNTERS_VERSION);
    assert_int_equal(c->bytes, sizeof *c);
    assert_int_equal(c->pid, getpid());
    assert_int_equal(c->rank, 3);
    assert_int_equal(c->size, 8);
    assert_int_equal(c->start_ns, 42);
    assert_string_equal(c->program, "prog");
    while (rnl_counters_item(c, n, &name, &text, &value)) {
        assert_int_equal(value, 0);
        assert_true(strlen(name) > 0 && strlen(text) > 0);
        n++;
    }
    assert_int_equal(n, (sizeof *c - offsetof(struct rnl_counters, messages_sent)) / sizeof(uint64_t));
    rnl_counters_free(c);
    rnl_counters_free(NULL);
}

static void items_come_in_the_order_of_the_layout(void **state)
{
    const char *name, *text;
    uint64_t value;
    (void)state;
    struct rnl_counters *c = page_of(0);
    c->messages_sent = 11;
    c->messages_received = 12;
    c->waiting_for_rank = 13;
    assert_int_equal(rnl_counters_item(c, 0, &name, &text, &value), 1);
    assert_string_equal(name, "messages_sent");
    assert_int_equal(value, 11);
    assert_int_equal(rnl_counters_item(c, 1, &name, &text, &value), 1);
    assert_string_equal(text, "messages whose handler returned");
    assert_int_equal(value, 12);
    unsigned last = 0;
    while (rnl_counters_item(c, last, &name, &text, &value)) {
        last++;
        if (strcmp(name, "waiting_for_rank") == 0)
            assert_int_equal(value, 13);
        else
            assert_true(value <= 12);
    }
    assert_true(last >= 29);
    assert_int_equal(rnl_counters_item(c, UINT32_MAX, &name, &text, &value), 0);
    rnl_counters_free(c);
}

static void odd_program_names_fit(void **state)
{
    struct rnl_counters *c, copy;
    char longer[200];
    (void)state;
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(rnl_counters_new(0, 1, longer, 0, &c), 0);
    assert_int_equal(strlen(c->program), sizeof c->program - 1);
    rnl_counters_free(c);
    assert_int_equal(rnl_counters_new(0, 1, NULL, 0, &c), 0);
    assert_string_equal(c->program, "");
    rnl_counters_free(c);
    assert_int_equal(rnl_counters_new(0, 1, "a\033[31mb\377", 0, &c), 0);
    assert_int_equal(rnl_counters_read(getpid(), &copy, 1), 1);
    assert_string_equal(copy.program, "a?[31mb?");
    rnl_counters_free(c);
}

static void several_pages_are_found_up_to_n(void **state)
{
    struct rnl_counters *c[5], copy[8];
    unsigned seen = 0;
    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        c[i] = page_of(i);
    assert_int_equal(rnl_counters_read(getpid(), copy, 8), 5);
    for (int i = 0; i < 5; i++)
        seen |= 1u << copy[i].rank;
    assert_int_equal(seen, 31);
    assert_int_equal(rnl_counters_read(getpid(), copy, 3), 3);
    assert_int_equal(rnl_counters_read(getpid(), copy, 0), 0);
    for (int i = 0; i < 5; i++)
        rnl_counters_free(c[i]);
    assert_int_equal(rnl_counters_read(getpid(), copy, 8), 0);
}

/* In a child: 0 if the parent's page shows `sleeps`. */
static int child_sees(pid_t parent, uint64_t sleeps)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rnl_counters copy;
        int n = rnl_counters_read(parent, &copy, 1);
        _exit(n == 1 && copy.sleeps == sleeps && copy.pid == (uint32_t)parent && copy.rank == 5 ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

static void another_process_reads_them_as_of_now(void **state)
{
    (void)state;
    struct rnl_counters *c = page_of(5);
    c->sleeps = 7;
    assert_int_equal(child_sees(getpid(), 7), 0);
    c->sleeps = (uint64_t)1 << 60;
    assert_int_equal(child_sees(getpid(), (uint64_t)1 << 60), 0);
    rnl_counters_free(c);
}

static void a_forked_child_does_not_show_its_parents_page(void **state)
{
    struct rnl_counters copy;
    int go[2];
    (void)state;
    struct rnl_counters *c = page_of(1);
    assert_int_equal(pipe(go), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char x;
        close(go[1]);
        (void)!read(go[0], &x, 1);
        _exit(0);
    }
    assert_int_equal(rnl_counters_read(pid, &copy, 1), 0);
    close(go[0]);
    close(go[1]);
    waitpid(pid, NULL, 0);
    rnl_counters_free(c);
}

static void no_such_process_is_an_error(void **state)
{
    struct rnl_counters copy;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    assert_int_equal(rnl_counters_read(pid, &copy, 1), RNL_ERR_SYSTEM);
    assert_int_equal(rnl_last_error()->sys_errno, ENOENT);
}

/* The descriptor of our only page. */
static int page_fd(void)
{
    for (int fd = 3; fd < 100; fd++) {
        char path[40], target[80];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0 && (target[n] = '\0', strstr(target, "runnel-counters") != NULL))
            return fd;
    }
    return -1;
}

static void the_page_is_sealed_and_closes_on_exec(void **state)
{
    char path[40];
    (void)state;
    struct rnl_counters *c = page_of(1);
    int fd = page_fd();
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    int probe = memfd_create("probe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fcntl(probe, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0) { /* Linux 5.1 */
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int again = open(path, O_RDWR | O_CLOEXEC);
        assert_true(again >= 0);
        assert_int_equal(pwrite(again, "x", 1, 0), -1);
        assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
        close(again);
    }
    close(probe);
    c->sleeps = 1; /* we can */
    rnl_counters_free(c);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A page made by hand. */
static int fake_page(const void *content, size_t n, off_t size)
{
    int fd = memfd_create("runnel-counters", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(pwrite(fd, content, n, 0), n);
    return fd;
}

static void fill_head(struct rnl_counters *c)
{
    memset(c, 0x41, sizeof *c); /* no string of it ends */
    c->magic = RNL_COUNTERS_MAGIC;
    c->version = RNL_COUNTERS_VERSION;
    c->bytes = sizeof *c;
    c->pid = (uint32_t)getpid();
}

static int read_fake(const struct rnl_counters *content, off_t size, struct rnl_counters *out)
{
    int fd = fake_page(content, sizeof *content, size);
    int n = rnl_counters_read(getpid(), out, 1);
    close(fd);
    return n;
}

static void strings_that_do_not_end_are_ended(void **state)
{
    struct rnl_counters c, out;
    (void)state;
    fill_head(&c);
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 1);
    assert_int_equal(strlen(out.program), sizeof out.program - 1);
    assert_true(out.waiting_for_rank == 0x4141414141414141u);
}

static void what_is_not_a_page_is_passed_by(void **state)
{
    struct rnl_counters c, out;
    (void)state;
    fill_head(&c);
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES + 1, &out), 0);
    assert_int_equal(read_fake(&c, sizeof c, &out), 0);
    c.magic++;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 0);
    fill_head(&c);
    c.bytes = UINT32_MAX;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 0);
    c.bytes = 8;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 0);
    fill_head(&c);
    c.pid++;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 0);
}

static void another_version_is_said(void **state)
{
    struct rnl_counters c, out[2];
    (void)state;
    fill_head(&c);
    c.version = RNL_COUNTERS_VERSION + 1;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, out), RNL_ERR_UNSUPPORTED);
    int fd = fake_page(&c, sizeof c, RNL_COUNTERS_BYTES);
    struct rnl_counters *good = page_of(6);
    assert_int_equal(rnl_counters_read(getpid(), out, 2), 1);
    assert_int_equal(out[0].rank, 6);
    rnl_counters_free(good);
    close(fd);
}

static void an_older_page_lacks_the_later_items(void **state)
{
    struct rnl_counters c, out;
    const char *name, *text;
    uint64_t value;
    (void)state;
    fill_head(&c);
    c.bytes = offsetof(struct rnl_counters, messages_sent) + 2 * sizeof(uint64_t);
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 1);
    assert_int_equal(rnl_counters_item(&out, 1, &name, &text, &value), 1);
    assert_true(value == 0x4141414141414141u);
    assert_int_equal(rnl_counters_item(&out, 2, &name, &text, &value), 0);
    assert_int_equal(out.waiting_for_rank, 0);
    fill_head(&c);
    c.bytes = sizeof c + 64; /* a newer one has more than we know */
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 1);
    assert_int_equal(out.bytes, sizeof out);
}

/* Without a memfd (here: no descriptor left) the page is private, and all else works. */
static void without_a_memfd_it_still_counts(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rnl_counters *c = NULL;
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0});
        if (memfd_create("x", MFD_CLOEXEC) >= 0)
            _exit(77);
        if (rnl_counters_new(2, 3, "p", 1, &c) != 0)
            _exit(1);
        c->sleeps = 5;
        int ok = c->magic == RNL_COUNTERS_MAGIC && c->rank == 2;
        rnl_counters_free(c);
        _exit(ok ? 0 : 2);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("skip: valgrind has descriptors of its own\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_page_is_zero_but_for_its_head),
        cmocka_unit_test(items_come_in_the_order_of_the_layout),
        cmocka_unit_test(odd_program_names_fit),
        cmocka_unit_test(several_pages_are_found_up_to_n),
        cmocka_unit_test(another_process_reads_them_as_of_now),
        cmocka_unit_test(a_forked_child_does_not_show_its_parents_page),
        cmocka_unit_test(no_such_process_is_an_error),
        cmocka_unit_test(the_page_is_sealed_and_closes_on_exec),
        cmocka_unit_test(strings_that_do_not_end_are_ended),
        cmocka_unit_test(what_is_not_a_page_is_passed_by),
        cmocka_unit_test(another_version_is_said),
        cmocka_unit_test(an_older_page_lacks_the_later_items),
        cmocka_unit_test(without_a_memfd_it_still_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
