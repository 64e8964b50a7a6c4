/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bench.c - what `runnel bench` computes, without processes: rows are the medians they claim to be, wrong bytes
 * are noticed, what is printed can be read. Never judges a time. */
#include "../../bench/baseline_copy.h"
#include "../../bench/machine.h"
#include "../../bench/process.h"
#include "../../bench/raw.h"
#include "../../bench/report.h"
#include "../../bench/scenario.h"
#include "../../bench/stats.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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

static struct bench_unit *add(struct bench_plan *p, enum bench_test test, uint64_t bytes)
{
    assert_int_equal(bench_plan_add(p, test, bytes, 1u << BENCH_FM, true), 0);
    for (size_t i = 0; i < p->units; i++)
        if (p->unit[i].test == test && p->unit[i].bytes == bytes)
            return &p->unit[i];
    fail();
    return NULL;
}

static void trial_of(struct bench_unit *u, enum bench_placement placement, double baseline0, double baseline1,
                     double fm)
{
    struct bench_trial r = {.placement = placement, .probe_ns = placement == BENCH_NEAR ? 50 : 200};
    for (unsigned v = 0; v < BENCH_VARIANTS; v++)
        r.baseline[v] = NAN;
    for (unsigned a = 0; a < BENCH_APIS; a++)
        r.value[a] = NAN;
    r.baseline[0] = baseline0;
    r.baseline[1] = baseline1;
    r.value[BENCH_FM] = fm;
    u->trial = realloc(u->trial, (u->trials + 1) * sizeof *u->trial);
    assert_non_null(u->trial);
    u->trial[u->trials++] = r;
}

/* Near the first variant is the baseline, far the second; ratios are taken trial by trial. */
static void rows_are_medians_of_their_placement(void **state)
{
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    struct bench_unit *u = add(&p, BENCH_LATENCY, 8);
    trial_of(u, BENCH_NEAR, 100, 120, 150);
    trial_of(u, BENCH_NEAR, 50, 60, 100);
    trial_of(u, BENCH_NEAR, 80, 130, 88);
    trial_of(u, BENCH_NEAR, NAN, 10, 1000); /* the baseline was disturbed: counts for the value only */
    trial_of(u, BENCH_FAR, 400, 200, 500);
    trial_of(u, BENCH_FAR, 400, 200, NAN);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_int_equal(n, 4);
    assert_true(row[0].api == BENCH_RAW && row[0].placement == BENCH_NEAR);
    assert_true(row[0].value == 80 && row[0].ratio == 1 && row[0].trials == 3);
    assert_true(row[1].api == BENCH_FM && row[1].value == 125 && row[1].baseline == 80 && row[1].trials == 4);
    assert_true(row[1].ratio == 1.5 && row[1].probe_ns == 50);
    assert_true(row[2].placement == BENCH_FAR && row[2].value == 200 && row[2].trials == 2);
    assert_true(row[3].value == 500 && row[3].ratio == 2.5 && row[3].trials == 1 && row[3].probe_ns == 200);
    free(row);
    bench_plan_free(&p);
}

/* A unit of a scenario has a baseline of its own and no row for it; single times come in its unit. */
static void a_scenario_has_rows_of_its_own(void **state)
{
    static const struct bench_scenario scenario = {.name = "scenario"};
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    add(&p, BENCH_LATENCY, 8);
    assert_int_equal(bench_scenario_add(&p, &scenario, BENCH_BARRIER, BENCH_NATIVE, 16, 8, 0, true), 0);
    assert_int_equal(bench_scenario_add(&p, &scenario, BENCH_BARRIER, BENCH_FM, 4, 8, 0, true), 0);
    assert_int_equal(bench_scenario_add(&p, &scenario, BENCH_BARRIER, BENCH_NATIVE, 4, 8, 1, true), 0);
    assert_int_equal(bench_scenario_add(&p, &scenario, BENCH_BARRIER, BENCH_NATIVE, 4, 8, 1, true), 0);
    struct bench_unit *first = bench_scenario_units(&p, &scenario, &n);
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
        bench_trial_begin(&first[1].now);
        bench_put(&first[1], 10 + i, 5);
        assert_int_equal(bench_trial_end(&run, &first[1], &first[1].now, 50, i < 2 ? 60 : 400, none, tail), 0);
    }
    assert_int_equal(first[1].flipped, 1);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_int_equal(n, 2 * (2 + 3));
    assert_true(row[3].test == BENCH_BARRIER && row[3].api == BENCH_NATIVE && row[3].n == 16 && row[3].trials == 2);
    assert_true(row[3].value == 10.5 && row[3].baseline == 5 && row[3].ratio == 2.1 && isnan(row[3].cpu_ns));
    assert_true(row[3].p999 > 63 && row[3].p999 < 65); /* us */
    assert_true(row[2].trials == 0 && isnan(row[2].value));
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
    trial_of(add(&p, BENCH_LATENCY, 65536), BENCH_NEAR, 1234567, 1234567, 12345678);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    char *json = printed(bench_report_json, row, n), *table = printed(bench_report_table, row, n);
    assert_non_null(
        strstr(json, "{\"test\":\"latency\",\"api\":\"fm\",\"transport\":\"shm\",\"bytes\":65536,\"value\":1.23457e+07,"
                     "\"unit\":\"ns\",\"baseline\":1.23457e+06,\"ratio\":10,\"placement\":\"near\",\"trials\":1,"));
    assert_non_null(strstr(
        json, "\"value\":null,\"unit\":\"ns\",\"baseline\":null,\"ratio\":null,\"placement\":\"far\",\"trials\":0"));
    assert_non_null(strstr(table, "near: a cache line crosses in 50 ns\n"));
    assert_non_null(strstr(table, "far: not seen in this run\n"));
    for (char *line = strtok(table, "\n"); line; line = strtok(NULL, "\n"))
        assert_in_range(strlen(line), 1, 80);
    free(json);
    free(table);
    free(row);
    bench_plan_free(&p);
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
    for (unsigned h = 0; h < RAW_HANDLERS; h++)
        b.handler[h] = h == 2 ? on_piece : on_line;
    memset(&echo, 0, sizeof echo);
    for (int trial = 0; trial < 3000; trial++) {
        /* Each way through the ring has its trials; both ends are idle, and begin again. */
        if (trial % 100 == 0) {
            struct baseline_through through = baseline_through((unsigned)trial / 100 % baseline_throughs());
            a.copy_in = b.copy_in = baseline_copy_way(through.in);
            a.copy_out = b.copy_out = baseline_copy_way(through.out);
            a.ring = b.ring = through.ring;
            a.bulk_out = a.peer_taken = b.bulk_in = b.taken_written = 0;
            atomic_store(&direction[0]->taken, 0);
        }
        seed = seed * 1103515245u + 12345u;
        echo.bytes = trial % 3 ? 1 + (seed >> 16) % RAW_PAYLOAD : 1 + (seed >> 8) % sizeof message;
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

/* Full lines past the caches: in order with open ones, the last line less than full. */
static void corked_messages_arrive_in_order(void **state)
{
    static struct raw_direction direction[2];
    struct raw_end a, b;
    uint64_t sent = 0;
    (void)state;
    if (!raw_can_cork())
        skip();
    raw_start(&a, &direction[0], &direction[1]);
    raw_start(&b, &direction[1], &direction[0]);
    for (unsigned h = 0; h < RAW_HANDLERS; h++)
        b.handler[h] = on_line;
    memset(&echo, 0, sizeof echo);
    echo.bytes = 8;
    for (int trial = 0; trial < 2000; trial++) {
        for (int burst = 1 + trial % 40; burst; burst--) {
            unsigned char message[8];
            bench_fill(message, sizeof message, sent++);
            raw_send_corked(&a, 1, message);
        }
        raw_uncork(&a, 1);
        raw_uncork(&a, 1); /* of nothing */
        if (trial % 3 == 0) {
            unsigned char message[8];
            bench_fill(message, sizeof message, sent++);
            raw_send(&a, 1, message, sizeof message);
        }
        while (raw_poll(&b))
            ;
        assert_int_equal(echo.next, sent);
        assert_int_equal(echo.wrong, 0);
    }
}

/* Every way that this processor has copies what it is given, and each is counted once. */
static void the_ways_through_the_ring_are_distinct(void **state)
{
    unsigned n = baseline_throughs();
    (void)state;
    assert_in_range(n, 3, BASELINE_THROUGH_MAX);
    for (unsigned i = 0; i < n; i++) {
        struct baseline_through x = baseline_through(i);
        assert_in_range(x.ring, 1, RAW_BULK);
        for (unsigned k = 0; k < i; k++) {
            struct baseline_through y = baseline_through(k);
            assert_false(x.in == y.in && x.out == y.out && x.ring == y.ring);
        }
        for (size_t bytes = 0; bytes < 400; bytes += 13) {
            _Alignas(64) unsigned char from[400], to[401];
            bench_fill(from, sizeof from, i);
            to[bytes] = 0xee;
            baseline_copy_way(x.in)(to, from, bytes);
            assert_memory_equal(to, from, bytes);
            assert_int_equal(to[bytes], 0xee);
        }
    }
}

/* A row of ours that beats its baseline by more than 5 % is found; few trials, rows of others, equal ones are not. */
static void what_is_better_than_its_floor_is_found(void **state)
{
    static const struct {
        enum bench_test test;
        double baseline, fm;
        int trials;
        bool above;
    } cases[] = {{BENCH_LATENCY, 100, 94, 5, true},    {BENCH_LATENCY, 100, 96, 5, false},
                 {BENCH_RATE, 100, 106, 5, true},      {BENCH_RATE, 100, 104, 5, false},
                 {BENCH_BANDWIDTH, 10, 12, 5, true},   {BENCH_BANDWIDTH, 10, 12, 4, false},
                 {BENCH_FRESH_ALONE, 10, 12, 5, true}, {BENCH_LATENCY, 100, 106, 5, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench_plan p = {0};
        struct bench_row *row;
        size_t n;
        struct bench_unit *u = add(&p, cases[i].test, 8);
        for (int k = 0; k < cases[i].trials; k++)
            trial_of(u, BENCH_FAR, cases[i].baseline, cases[i].baseline, cases[i].fm);
        assert_int_equal(bench_rows(&p, false, &row, &n), 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(bench_row_above(&row[k]),
                             cases[i].above && row[k].api == BENCH_FM && row[k].placement == BENCH_FAR);
        for (size_t k = 0; k < n; k++) {
            row[k].api = BENCH_OPENMPI;
            assert_false(bench_row_above(&row[k]));
            row[k].api = BENCH_FM;
            row[k].udp = true;
            assert_false(bench_row_above(&row[k]));
        }
        free(row);
        bench_plan_free(&p);
    }
    (void)state;
}

/* Who reads a row learns what became of the bytes, and which way the baseline is. */
static void rows_say_what_data_they_are_of(void **state)
{
    struct bench_plan p = {0};
    struct bench_row *row;
    size_t n;
    (void)state;
    trial_of(add(&p, BENCH_LATENCY, 8), BENCH_NEAR, 50, 60, 70);
    trial_of(add(&p, BENCH_LATENCY, 65536), BENCH_NEAR, 50, 60, 70);
    trial_of(add(&p, BENCH_BANDWIDTH, 65536), BENCH_NEAR, 5, 6, 7);
    trial_of(add(&p, BENCH_FRESH_ALONE, 65536), BENCH_NEAR, 5, 6, 7);
    assert_int_equal(bench_rows(&p, false, &row, &n), 0);
    assert_true(n == 16 && !row[0].data && row[0].bytes == 8);
    assert_string_equal(row[2].data, "unchanged");
    assert_string_equal(row[4].data, "rewritten");
    assert_string_equal(row[6].data, "fresh");
    char *json = printed(bench_report_json, row, n), *table = printed(bench_report_table, row, n), want[48];
    baseline_through_text(1, want, sizeof want);
    assert_string_equal(row[4].way, want);
    assert_true(row[5].way[0] == 0 && row[0].way[0] == 0);
    assert_non_null(strstr(json, "\"data\":\"unchanged\",\"way\":\"movsb in, "));
    assert_non_null(strstr(json, "\"data\":\"fresh\""));
    assert_non_null(strstr(table, " 64K= "));
    assert_non_null(strstr(table, "=: the same bytes each time"));
    free(json);
    free(table);
    free(row);
    bench_plan_free(&p);
}

/* A peer that fails is lost and the run goes on; a pair of a scenario has the same number, but a role, and ends it. */
static void what_a_layer_keeps_is_told_of_both_ways(void **state)
{
    const struct bench_row row[] = {
        {.test = BENCH_LATENCY, .api = BENCH_NATIVE, .bytes = 16, .shown = true, .value = 100, .ratio = 1, .trials = 9},
        {.test = BENCH_LATENCY, .api = BENCH_FM, .bytes = 16, .shown = true, .value = 120, .ratio = 1.2, .trials = 9},
        {.test = BENCH_LATENCY, .api = BENCH_OPENMPI_RNL, .bytes = 16, .value = 200, .ratio = 2, .trials = 9},
        {.test = BENCH_LATENCY, .api = BENCH_PROVIDER, .bytes = 16, .value = NAN, .ratio = NAN},
        {.test = BENCH_BANDWIDTH,
         .api = BENCH_FM,
         .bytes = 1 << 20,
         .shown = true,
         .value = 9,
         .ratio = 0.9,
         .trials = 9},
        {.test = BENCH_BANDWIDTH, .api = BENCH_OPENMPI_RNL, .bytes = 1 << 20, .value = 8.1, .ratio = 0.81, .trials = 9},
        {.test = BENCH_BANDWIDTH, .api = BENCH_OPENMPI_RNL, .bytes = 1 << 20, .placement = BENCH_FAR, .ratio = 0.1},
    };
    size_t n = sizeof row / sizeof *row;
    (void)state;
    char *text = printed(bench_report_efficiency, row, n);
    assert_non_null(strstr(text, "latency              16 near     native          -        50         -\n"));
    assert_non_null(strstr(text, "latency              16 near     fm              -        60         -\n"));
    assert_non_null(strstr(text, "bandwidth            1M near     fm              -        90         -\n"));
    assert_null(strstr(text, "far"));
    free(text);
    text = printed(bench_report_efficiency, row, 2); /* no layer was measured */
    assert_string_equal(text, "");
    free(text);
    assert_true(bench_plot_mpi_has(row, n, BENCH_NEAR) && !bench_plot_mpi_has(row, n, BENCH_FAR));
}

/* What losses cost is drawn without depths, too, as `sweep-loss` measures it. */
static void losses_alone_have_a_picture(void **state)
{
    const struct bench_row loss = {
        .test = BENCH_AM_LOSS_TRIP, .api = BENCH_AM, .n = 10, .value = 2000, .baseline = 4000, .trials = 3};
    const struct bench_row other = {.test = BENCH_LATENCY, .api = BENCH_FM, .value = 1, .trials = 3};
    (void)state;
    assert_true(bench_plot_am_has(&loss, 1, BENCH_NEAR) && !bench_plot_am_has(&loss, 1, BENCH_FAR));
    assert_false(bench_plot_am_has(&other, 1, BENCH_NEAR));
}

/* What is above 150 percent is drawn, and the paper's point of 16 bytes at 16 bytes, also where nothing so short was
 * measured. */
static void the_picture_of_mpi_holds_all_points(void **state)
{
    const struct bench_row row[] = {
        {.test = BENCH_BANDWIDTH, .api = BENCH_FM, .bytes = 64, .value = 1, .ratio = 0.3, .trials = 9},
        {.test = BENCH_BANDWIDTH, .api = BENCH_PROVIDER, .bytes = 64, .value = 2, .ratio = 0.6, .trials = 9},
        {.test = BENCH_BANDWIDTH, .api = BENCH_FM, .bytes = 1 << 20, .value = 9, .ratio = 0.9, .trials = 9},
        {.test = BENCH_BANDWIDTH, .api = BENCH_PROVIDER, .bytes = 1 << 20, .value = 9, .ratio = 0.9, .trials = 9},
    };
    char *text = NULL;
    size_t bytes;
    (void)state;
    FILE *f = open_memstream(&text, &bytes);
    assert_non_null(f);
    bench_plot_mpi(f, "mpi.png", row, sizeof row / sizeof *row, BENCH_NEAR);
    fclose(f);
    assert_non_null(strstr(text, "set yrange [0:100<*]\n"));
    assert_non_null(strstr(text, "\n64 200 9\n"));
    assert_non_null(strstr(text, "\n16 70\n1048576 90\n"));
    assert_non_null(strstr(text, "set xrange [16:1048576]\n"));
    free(text);
}

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
    bench_assign_role(run.area, BENCH_OWN, "idle-fm", 2, 0);
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
        cmocka_unit_test(one_changed_byte_is_noticed),
        cmocka_unit_test(rows_are_medians_of_their_placement),
        cmocka_unit_test(a_scenario_has_rows_of_its_own),
        cmocka_unit_test(what_was_not_seen_is_said),
        cmocka_unit_test(corked_messages_arrive_in_order),
        cmocka_unit_test(the_ways_through_the_ring_are_distinct),
        cmocka_unit_test(what_is_better_than_its_floor_is_found),
        cmocka_unit_test(rows_say_what_data_they_are_of),
        cmocka_unit_test(raw_ring_delivers_in_order),
        cmocka_unit_test(what_a_layer_keeps_is_told_of_both_ways),
        cmocka_unit_test(losses_alone_have_a_picture),
        cmocka_unit_test(the_picture_of_mpi_holds_all_points),
        cmocka_unit_test(a_peer_is_lost_and_a_role_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
