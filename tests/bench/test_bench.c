/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bench.c - what `runnel bench` computes, without processes: rows are the medians they claim to be, wrong bytes
 * are noticed, what is printed can be read. Never judges a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../bench/floor_copy.h"
#include "../../bench/machine.h"
#include "../../bench/plot.h"
#include "../../bench/report.h"
#include "../../bench/scene.h"
#include "../../bench/side.h"
#include "../../bench/stats.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void median_is_the_middle(void **state)
{
    (void)state;
    assert_true(bench_median(NULL, 0) == 0);
    assert_true(bench_median((double[]){7}, 1) == 7);
    assert_true(bench_median((double[]){9, 1, 5}, 3) == 5);
    assert_true(bench_median((double[]){9, 1, 5, 2}, 4) == 3.5);
}

static void placement_follows_the_probes(void **state)
{
    (void)state;
    assert_int_equal(bench_place(30, 35), BENCH_NEAR);
    assert_int_equal(bench_place(89, 89), BENCH_NEAR);
    assert_int_equal(bench_place(109, 109), BENCH_NEAR);
    assert_int_equal(bench_place(111, 111), BENCH_FAR);
    assert_int_equal(bench_place(170, 220), BENCH_FAR);
    assert_int_equal(bench_place(60, 85), BENCH_FLIPPED);
    assert_int_equal(bench_place(200, 40), BENCH_FLIPPED);
}

static void sizes_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"8", 8}, {"64K", 65536}, {"1M", 1 << 20}, {"3k", 3072}, {"0", 0}};
    static const char *const bad[] = {
        "", "K", "-1", "8x", "8KK", "1.5K", " 8", "99999999999999999999", "18446744073709551615M"};
    char text[24];
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(bench_bytes_parse(good[i].text, &bytes), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(bench_bytes_parse(bad[i], &bytes), -EINVAL);
    bench_bytes_text(65536, text);
    assert_string_equal(text, "64K");
    bench_bytes_text(1000, text);
    assert_string_equal(text, "1000");
}

static void one_changed_byte_is_noticed(void **state)
{
    unsigned char buffer[1003];
    (void)state;
    for (size_t n = 1; n < sizeof buffer; n += 37) {
        bench_fill(buffer, n, 12345);
        assert_true(bench_filled(buffer, n, 12345));
        assert_false(bench_filled(buffer, n, 12346));
        for (size_t i = 0; i < n; i += 5) {
            buffer[i] ^= 0x10;
            assert_false(bench_filled(buffer, n, 12345));
            buffer[i] ^= 0x10;
        }
    }
}

static void copies_copy(void **state)
{
    static unsigned char from[5000], to[5000];
    (void)state;
    for (unsigned v = 0; v <= floor_copies_in(); v++) {
        floor_copy *copy = v < floor_copies_in() ? floor_copy_in(v) : floor_copy_out();
        for (size_t n = 0; n < 4000; n += 1 + n / 3) {
            bench_fill(from, sizeof from, n + v);
            memset(to, 0, sizeof to);
            copy(to + 64, from + 3, n);
            assert_memory_equal(to + 64, from + 3, n);
            assert_true(to[63] == 0 && to[64 + n] == 0);
        }
    }
}

static struct bench_unit *add(struct bench_plan *p, enum bench_test test, uint64_t bytes)
{
    assert_int_equal(bench_plan_add(p, test, bytes, 1u << BENCH_FM, true), 0);
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].test == test && p->unit[i].bytes == bytes)
            return &p->unit[i];
    fail();
    return NULL;
}

static void round_of(struct bench_unit *u, enum bench_placement placement, double floor0, double floor1, double fm)
{
    struct bench_round r = {.placement = placement, .probe_ns = placement == BENCH_NEAR ? 50 : 200};
    for (unsigned v = 0; v < BENCH_VARIANTS; v++)
        r.floor[v] = NAN;
    for (unsigned a = 0; a < BENCH_APIS; a++)
        r.value[a] = NAN;
    r.floor[0] = floor0;
    r.floor[1] = floor1;
    r.value[BENCH_FM] = fm;
    u->round = realloc(u->round, (u->rounds + 1) * sizeof *u->round);
    assert_non_null(u->round);
    u->round[u->rounds++] = r;
}

static void a_plan_is_in_order_and_has_no_doubles(void **state)
{
    struct bench_plan p = {0};
    (void)state;
    add(&p, BENCH_BANDWIDTH, 64);
    add(&p, BENCH_LATENCY, 4096);
    add(&p, BENCH_LATENCY, 8);
    add(&p, BENCH_LATENCY, 4096);
    assert_int_equal(p.units, 3);
    assert_true(p.unit[0].test == BENCH_LATENCY && p.unit[0].bytes == 8);
    assert_true(p.unit[1].test == BENCH_LATENCY && p.unit[1].bytes == 4096);
    assert_true(p.unit[2].test == BENCH_BANDWIDTH);
    bench_plan_free(&p);
}

/* Near the first variant is the floor, far the second; ratios are taken round by round. */
static void rows_are_medians_of_their_placement(void **state)
{
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    struct bench_unit *u = add(&p, BENCH_LATENCY, 8);
    round_of(u, BENCH_NEAR, 100, 120, 150);
    round_of(u, BENCH_NEAR, 50, 60, 100);
    round_of(u, BENCH_NEAR, 80, 130, 88);
    round_of(u, BENCH_NEAR, NAN, 10, 1000); /* the floor was disturbed: counts for the value only */
    round_of(u, BENCH_FAR, 400, 200, 500);
    round_of(u, BENCH_FAR, 400, 200, NAN);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_int_equal(n, 4);
    assert_true(row[0].api == BENCH_RAW && row[0].placement == BENCH_NEAR);
    assert_true(row[0].value == 80 && row[0].ratio == 1 && row[0].rounds == 3);
    assert_true(row[1].api == BENCH_FM && row[1].value == 125 && row[1].floor == 80 && row[1].rounds == 4);
    assert_true(row[1].ratio == 1.5 && row[1].probe_ns == 50);
    assert_true(row[2].placement == BENCH_FAR && row[2].value == 200 && row[2].rounds == 2);
    assert_true(row[3].value == 500 && row[3].ratio == 2.5 && row[3].rounds == 1 && row[3].probe_ns == 200);
    free(row);
    bench_plan_free(&p);
}

/* A unit of a scene has a floor of its own and no row for it; single times come in its unit. */
static void a_scene_has_rows_of_its_own(void **state)
{
    static const struct bench_scene scene = {.name = "scene"};
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    add(&p, BENCH_LATENCY, 8);
    assert_int_equal(bench_scene_add(&p, &scene, BENCH_BARRIER, BENCH_NATIVE, 16, 8, 0, true), 0);
    assert_int_equal(bench_scene_add(&p, &scene, BENCH_BARRIER, BENCH_FM, 4, 8, 0, true), 0);
    assert_int_equal(bench_scene_add(&p, &scene, BENCH_BARRIER, BENCH_NATIVE, 4, 8, 1, true), 0);
    assert_int_equal(bench_scene_add(&p, &scene, BENCH_BARRIER, BENCH_NATIVE, 4, 8, 1, true), 0);
    struct bench_unit *first = bench_scene_units(&p, &scene, &n);
    assert_ptr_equal(first, &p.unit[1]);
    assert_int_equal(n, 3);
    assert_true(first[0].n == 4 && first[1].n == 16 && bench_unit_api(&first[2]) == BENCH_FM);
    assert_ptr_equal(bench_find(&first[1], 2, BENCH_BARRIER, BENCH_FM, 4), &first[2]);
    assert_null(bench_find(&first[1], 2, BENCH_BARRIER, BENCH_FM, 16));
    for (int i = 0; i < 3; i++) {
        struct rnl_hist *none[BENCH_VARIANTS] = {0}, *tail[BENCH_APIS] = {0}, times = {0};
        static struct bench_area area;
        struct bench_run run = {.area = &area};
        rnl_hist_record(&times, 64000);
        tail[BENCH_NATIVE] = &times;
        bench_round_begin(&first[1].now);
        bench_put(&first[1], 10 + i, 5);
        assert_int_equal(bench_round_end(&run, &first[1], &first[1].now, 50, i < 2 ? 60 : 400, none, tail), 0);
    }
    assert_int_equal(first[1].flipped, 1);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_int_equal(n, 2 * (2 + 3));
    assert_true(row[3].test == BENCH_BARRIER && row[3].api == BENCH_NATIVE && row[3].n == 16 && row[3].rounds == 2);
    assert_true(row[3].value == 10.5 && row[3].floor == 5 && row[3].ratio == 2.1 && isnan(row[3].cpu_ns));
    assert_true(row[3].p999 > 63 && row[3].p999 < 65); /* us */
    assert_true(row[2].rounds == 0 && isnan(row[2].value));
    free(row);
    bench_plan_free(&p);
}

static void more_is_better_but_for_latency(void **state)
{
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    round_of(add(&p, BENCH_BANDWIDTH, 8), BENCH_NEAR, 10, 20, 15);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_true(row[0].value == 20 && row[1].ratio == 0.75);
    free(row);
    bench_plan_free(&p);
}

static char *printed(void print(FILE *, const struct bench_row *, size_t), const struct bench_row *row, size_t n)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    print(f, row, n);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void what_was_not_seen_is_said(void **state)
{
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    round_of(add(&p, BENCH_LATENCY, 65536), BENCH_NEAR, 1234567, 1234567, 12345678);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    char *json = printed(bench_report_json, row, n), *table = printed(bench_report_table, row, n);
    assert_non_null(
        strstr(json, "{\"test\":\"latency\",\"api\":\"fm\",\"transport\":\"shm\",\"bytes\":65536,\"value\":1.23457e+07,"
                     "\"unit\":\"ns\",\"floor\":1.23457e+06,\"ratio\":10,\"placement\":\"near\",\"rounds\":1,"));
    assert_non_null(strstr(
        json, "\"value\":null,\"unit\":\"ns\",\"floor\":null,\"ratio\":null,\"placement\":\"far\",\"rounds\":0"));
    assert_non_null(strstr(table, "near: a cache line crosses in 50 ns\n"));
    assert_non_null(strstr(table, "far: not seen in this run\n"));
    for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n"))
        assert_in_range(strlen(line), 1, 80);
    free(json);
    free(table);
    free(row);
    bench_plan_free(&p);
}

static void a_curve_breaks_where_nothing_was_measured(void **state)
{
    struct bench_row row[9];
    char *text = NULL;
    size_t size;
    (void)state;
    static const enum bench_test tests[] = {BENCH_LATENCY, BENCH_LAYERED, BENCH_AM_RATE};
    for (int i = 0; i < 9; i++) /* three sizes of each test, the middle one without a figure */
        row[i] = (struct bench_row){.test = tests[i / 3],
                                    .api = i < 6 ? BENCH_FM : BENCH_AM,
                                    .bytes = 8u << i,
                                    .n = 8u << i,
                                    .value = i % 3 == 1 ? NAN : 5,
                                    .floor = 5,
                                    .ratio = 1,
                                    .rounds = i % 3 == 1 ? 0 : 2};
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    bench_plot_sizes(f, "x.png", row, 9, BENCH_LATENCY, row->placement);
    bench_plot_layered(f, "x.png", row, 9, row->placement);
    bench_plot_am(f, "x.png", row, 9, row->placement);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "8 5 2\n\n32 5 2\n"));
    assert_non_null(strstr(text, "64 5 5 100 2\n\n256 5 5 100 2\n"));
    assert_non_null(strstr(text, "512 5 5\n\n2048 5 5\n"));
    free(text);
}

/* Also the longest names, and figures of a machine that takes its time. */
static void columns_stay_apart_and_within_80(void **state)
{
    const struct bench_row row[] = {
        {.test = BENCH_BANDWIDTH_ALONE,
         .api = BENCH_LIBFABRIC,
         .bytes = 65535,
         .shown = true,
         .rounds = 123456,
         .value = 123456789,
         .floor = 999999.4,
         .ratio = 12345,
         .probe_ns = 50,
         .p50 = 9999.4,
         .p999 = 12345678,
         .cpu_ns = 9999999},
        {.test = BENCH_BANDWIDTH_ALONE,
         .api = BENCH_LIBFABRIC,
         .bytes = 1 << 20,
         .shown = true,
         .probe_ns = 50,
         .lost = "one sentence that is so long that it has to be cut somewhere, for there is no room"},
    };
    (void)state;
    char *table = printed(bench_report_table, row, 2), *save;
    for (char *line = strtok_r(table, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool figures = strstr(line, "65535");
        unsigned words = 0;
        assert_in_range(strlen(line), 1, 80);
        for (char *word, *at = line; (word = strtok_r(at, " ", &at)) != NULL;)
            words++;
        assert_true(words == 10 || !figures);
    }
    free(table);
}

/* Both ends of the raw ring in one thread: any lengths, in order, nothing lost at the wrap of lines and of bulk. */
struct echo {
    uint64_t next, wrong;
    size_t bytes;
    unsigned char to[70000];
};
static struct echo echo;

static void on_line(struct raw_end *e, const void *payload, uint32_t len)
{
    (void)e;
    echo.wrong += len != echo.bytes || !bench_filled(payload, len, echo.next);
    echo.next++;
}

static void on_piece(struct raw_end *e, const void *payload, uint32_t len)
{
    (void)len;
    e->to = echo.to;
    e->to_bytes = echo.bytes;
    if (raw_take(e, payload)) {
        echo.wrong += !bench_filled(echo.to, echo.bytes, echo.next);
        echo.next++;
    }
}

static void raw_ring_delivers_in_order(void **state)
{
    static unsigned char message[70000];
    struct raw_direction *direction[2];
    struct raw_end a, b;
    uint64_t sent = 0;
    unsigned seed = 1;
    (void)state;
    for (int i = 0; i < 2; i++) { /* what goes past the end faults */
        unsigned char *at =
            mmap(NULL, sizeof **direction + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(at != MAP_FAILED);
        assert_int_equal(mprotect(at + sizeof **direction, 4096, PROT_NONE), 0);
        direction[i] = (void *)at;
    }
    raw_start(&a, direction[0], direction[1]);
    raw_start(&b, direction[1], direction[0]);
    a.copy_in = b.copy_in = floor_copy_in(0);
    a.copy_out = b.copy_out = floor_copy_out();
    for (unsigned h = 0; h < RAW_HANDLERS; h++)
        b.handler[h] = h == 2 ? on_piece : on_line;
    memset(&echo, 0, sizeof echo);
    for (int round = 0; round < 3000; round++) {
        seed = seed * 1103515245u + 12345u;
        echo.bytes = round % 3 ? 1 + (seed >> 16) % RAW_PAYLOAD : 1 + (seed >> 8) % sizeof message;
        for (unsigned burst = echo.bytes > RAW_PAYLOAD ? 1 : 1 + (seed >> 20) % 40; burst; burst--) {
            bench_fill(message, echo.bytes, sent++);
            if (echo.bytes <= RAW_PAYLOAD)
                raw_send(&a, burst % 2, message, (uint32_t)echo.bytes);
            else
                raw_send_bulk(&a, 2, message, echo.bytes);
        }
        while (raw_poll(&b))
            ;
        assert_int_equal(echo.next, sent);
        assert_int_equal(echo.wrong, 0);
    }
    for (int i = 0; i < 2; i++)
        munmap(direction[i], sizeof **direction + 4096);
}

static void an_area_of_another_build_is_refused(void **state)
{
    struct bench_area *a, *b;
    char path[64], name[] = "/tmp/runnel-bench-test-XXXXXX";
    int fd, other;
    (void)state;
    assert_int_equal(bench_area_create(&a, &fd), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(bench_area_attach(path, &b), 0);
    b->one_core = 77;
    assert_int_equal(a->one_core, 77);
    a->bytes++;
    assert_int_equal(bench_area_attach(path, &b), -EPROTO);
    other = mkstemp(name);
    assert_true(other >= 0);
    assert_int_equal(bench_area_attach(name, &b), -EPROTO);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(bench_area_attach(name, &b), -ENOENT);
    close(other);
    close(fd);
}

/* A peer that fails is lost and the run goes on; the pairs of scenes have the same numbers, but roles: they end it. */
static void a_peer_is_lost_and_a_role_is_not(void **state)
{
    const struct bench_order order = {.test = BENCH_LATENCY, .bytes = 8, .count = 1};
    struct bench_plan plan = {.calm = 1};
    struct bench_series series = {.count = 1};
    struct bench_unit unit = {.test = BENCH_LATENCY, .bytes = 8};
    struct bench_run run = {.plan = &plan, .peer_ms = 1000};
    double value = NAN, cpu_ns = NAN;
    int fd;
    (void)state;
    assert_int_equal(bench_area_create(&run.area, &fd), 0);
    bench_pair_fail(&run.area->pair[BENCH_OWN], 0, "the sky fell down");
    assert_int_equal(bench_order(&run, BENCH_OWN, &order), 0);
    assert_string_equal(plan.lost[BENCH_OWN], "the sky fell down");
    assert_true(plan.text[0] == 0);
    bench_area_free(run.area, fd);

    assert_int_equal(bench_area_create(&run.area, &fd), 0);
    bench_cast(run.area, BENCH_OWN, "idle-fm", 2, 0);
    atomic_store(&run.area->pair[BENCH_OWN].done, 4); /* both attached, and have done the order below */
    assert_int_equal(bench_repeat(&run, &unit, BENCH_LATENCY, BENCH_OWN, 0, &series, &value, &cpu_ns), 0);
    assert_true(value == 0 && cpu_ns == 0); /* somebody answered, whatever became of the peer of that number */
    bench_pair_fail(&run.area->pair[BENCH_OWN], 1, "no memory");
    assert_int_equal(bench_order(&run, BENCH_OWN, &order), -EPROTO);
    assert_string_equal(plan.text, "the processes for idle-fm failed: no memory");
    bench_area_free(run.area, fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_is_the_middle),
        cmocka_unit_test(placement_follows_the_probes),
        cmocka_unit_test(sizes_are_read_and_written),
        cmocka_unit_test(one_changed_byte_is_noticed),
        cmocka_unit_test(copies_copy),
        cmocka_unit_test(a_plan_is_in_order_and_has_no_doubles),
        cmocka_unit_test(rows_are_medians_of_their_placement),
        cmocka_unit_test(a_scene_has_rows_of_its_own),
        cmocka_unit_test(more_is_better_but_for_latency),
        cmocka_unit_test(what_was_not_seen_is_said),
        cmocka_unit_test(a_curve_breaks_where_nothing_was_measured),
        cmocka_unit_test(columns_stay_apart_and_within_80),
        cmocka_unit_test(raw_ring_delivers_in_order),
        cmocka_unit_test(an_area_of_another_build_is_refused),
        cmocka_unit_test(a_peer_is_lost_and_a_role_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
