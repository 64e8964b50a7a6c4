/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_counters.c - counters pages: found and read from outside, and not trusted. */
#include "base/counters.h"
#include "base/error.h"
#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
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
    while (rnl_counters_item((const void *)c, n, &name, &text, &value)) {
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
    assert_int_equal(rnl_counters_item((const void *)c, 0, &name, &text, &value), 1);
    assert_string_equal(name, "messages_sent");
    assert_int_equal(value, 11);
    assert_int_equal(rnl_counters_item((const void *)c, 1, &name, &text, &value), 1);
    assert_string_equal(text, "messages whose handler returned");
    assert_int_equal(value, 12);
    unsigned last = 0;
    while (rnl_counters_item((const void *)c, last, &name, &text, &value)) {
        last++;
        if (strcmp(name, "waiting_for_rank") == 0)
            assert_int_equal(value, 13);
        else
            assert_true(value <= 12);
    }
    assert_true(last >= 29);
    assert_int_equal(rnl_counters_item((const void *)c, UINT32_MAX, &name, &text, &value), 0);
    rnl_counters_free(c);
}

static void a_forked_child_does_not_show_its_parents_page(void **state)
{
    struct rnl_counters_page copy;
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
    int fd = memfd_create("runnel-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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

static int read_fake(const struct rnl_counters *content, off_t size, struct rnl_counters_page *out)
{
    int fd = fake_page(content, sizeof *content, size);
    int n = rnl_counters_read(getpid(), out, 1);
    close(fd);
    return n;
}

static void what_is_not_a_page_is_passed_by(void **state)
{
    struct rnl_counters c;
    struct rnl_counters_page out;
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

static void a_page_is_read_again_only_where_it_still_is(void **state)
{
    struct rnl_counters c;
    struct rnl_counters_page out;
    struct rnl_counters_view view = {.at = NULL};
    (void)state;
    fill_head(&c);
    c.start_ns = 7;
    c.rank = 3;
    int fd = fake_page(&c, sizeof c, RNL_COUNTERS_BYTES);
    assert_int_equal(rnl_counters_find(getpid(), &out, &view, 1), 0); /* its owner could take it away */
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(rnl_counters_find(getpid(), &out, &view, 1), 1);
    assert_int_equal(view.fd, fd);
    c.rank = 4;
    assert_int_equal(pwrite(fd, &c, sizeof c, 0), sizeof c);
    assert_true(rnl_counters_again(getpid(), &view, &out));
    assert_int_equal(out.core.rank, 4);
    c.start_ns++; /* another endpoint's */
    assert_int_equal(pwrite(fd, &c, sizeof c, 0), sizeof c);
    assert_false(rnl_counters_again(getpid(), &view, &out));
    out.core = c;
    c.pid++; /* another process's */
    assert_int_equal(pwrite(fd, &c, sizeof c, 0), sizeof c);
    assert_false(rnl_counters_again(getpid(), &view, &out));
    out.core = c;
    assert_true(rnl_counters_again(getpid(), &view, &out));
    close(fd); /* as by exec, which clears nothing */
    assert_false(rnl_counters_again(getpid(), &view, &out));
    rnl_counters_unview(&view);
}

static void a_page_that_was_freed_is_told_from_the_next_one(void **state)
{
    struct rnl_counters_page out;
    struct rnl_counters_view view = {.at = NULL};
    struct rnl_counters *c = page_of(3);
    (void)state;
    assert_int_equal(rnl_counters_find(getpid(), &out, &view, 1), 1);
    assert_true(rnl_counters_again(getpid(), &view, &out));
    rnl_counters_free(c);
    c = page_of(3); /* behind the same descriptor */
    assert_false(rnl_counters_again(getpid(), &view, &out));
    rnl_counters_unview(&view);
    rnl_counters_free(c);
}

static void another_version_is_said(void **state)
{
    struct rnl_counters c;
    struct rnl_counters_page out[2];
    (void)state;
    fill_head(&c);
    c.version = RNL_COUNTERS_VERSION + 1;
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, out), RNL_ERR_UNSUPPORTED);
    int fd = fake_page(&c, sizeof c, RNL_COUNTERS_BYTES);
    struct rnl_counters *good = page_of(6);
    assert_int_equal(rnl_counters_read(getpid(), out, 2), 1);
    assert_int_equal(out[0].core.rank, 6);
    rnl_counters_free(good);
    close(fd);
}

static void an_older_page_lacks_the_later_items(void **state)
{
    struct rnl_counters c;
    struct rnl_counters_page out;
    const char *name, *text;
    uint64_t value;
    (void)state;
    fill_head(&c);
    c.bytes = offsetof(struct rnl_counters, messages_sent) + 2 * sizeof(uint64_t);
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 1);
    assert_int_equal(rnl_counters_item(&out, 1, &name, &text, &value), 1);
    assert_true(value == 0x4141414141414141u);
    assert_int_equal(rnl_counters_item(&out, 2, &name, &text, &value), 0);
    assert_int_equal(out.core.waiting_for_rank, 0);
    fill_head(&c);
    c.bytes = sizeof c + 64; /* a newer one has more than we know */
    assert_int_equal(read_fake(&c, RNL_COUNTERS_BYTES, &out), 1);
    assert_int_equal(out.core.bytes, sizeof out.core);
}

/* Whatever a page says of the counters of interfaces, texts end, hold no control characters, and are not too many. */
static void counters_of_interfaces_are_not_trusted(void **state)
{
    static const struct rnl_counter_text table[] = {{"one", "the first"}, {"two", "the second"}, {NULL, NULL}};
    static struct rnl_counters_page c, out[1];
    const char *name, *text;
    uint64_t value, *count;
    unsigned n = 0, core = 0;
    (void)state;
    struct rnl_counters *good = page_of(4);
    while (rnl_counters_item((const void *)good, core, &name, &text, &value))
        core++;
    assert_int_equal(rnl_counters_add(good, "Any", table, &count), 0);
    count[1] = 9;
    assert_int_equal(rnl_counters_item((const void *)good, core + 1, &name, &text, &value), 1);
    assert_string_equal(name, "Any.two");
    assert_string_equal(text, "the second");
    assert_int_equal(value, 9);
    assert_int_equal(rnl_counters_item((const void *)good, core + 2, &name, &text, &value), 0);
    rnl_counters_free(good);

    memset(&c, 0x1b, sizeof c);
    fill_head(&c.core);
    int fd = fake_page(&c, sizeof c, RNL_COUNTERS_BYTES);
    assert_int_equal(rnl_counters_read(getpid(), out, 1), 1);
    close(fd);
    for (; n < 100 && rnl_counters_item(out, n, &name, &text, &value); n++)
        if (n >= core) {
            assert_int_equal(strlen(name), 31);
            assert_int_equal(strspn(name, "?"), 31);
            assert_int_equal(strlen(text), 99);
        }
    assert_int_equal(n, core + RNL_COUNTERS_IFACE_MAX);
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
        cmocka_unit_test(a_forked_child_does_not_show_its_parents_page),
        cmocka_unit_test(the_page_is_sealed_and_closes_on_exec),
        cmocka_unit_test(what_is_not_a_page_is_passed_by),
        cmocka_unit_test(a_page_is_read_again_only_where_it_still_is),
        cmocka_unit_test(a_page_that_was_freed_is_told_from_the_next_one),
        cmocka_unit_test(another_version_is_said),
        cmocka_unit_test(an_older_page_lacks_the_later_items),
        cmocka_unit_test(counters_of_interfaces_are_not_trusted),
        cmocka_unit_test(without_a_memfd_it_still_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
