/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_findings.c - what `runnel doctor` draws from what it has seen: a healthy report has no findings; one thing
 * that is wrong is one finding, of its severity, with a remedy and somebody to ask. */
#include "launcher/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>

#include "support/unit.h"

enum { HOSTS = 2 };
#define MIB (UINT64_C(1) << 20)

static struct rnl_doctor_report *report;
static struct rnl_findings all;

static void good_path(struct rnl_path_report *p, uint32_t from, uint32_t to)
{
    *p = (struct rnl_path_report){.agreed = 1,
                                  .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = (uint8_t)(to + 1)},
                                  .result = {.sent = 400,
                                             .counts = {.came = 400},
                                             .passes = 1472,
                                             .takes = 1472,
                                             .echoes = 400,
                                             .done = 1,
                                             .least_ns = 20000,
                                             .half_ns = 30000,
                                             .most_ns = 90000}};
    p->attempts = (struct rnl_probe_failure){.other = to, .heard = 1, .asked = from < to, .addresses = 1};
    p->attempts.address[0] = (struct rnl_probe_attempt){.port = 700, .works = 1};
    memcpy(p->attempts.address[0].ip, p->ip, sizeof p->ip);
}

static int set_up(void **state)
{
    static const char *const name[HOSTS] = {"a", "b"};
    (void)state;
    report = calloc(1, sizeof *report + HOSTS * sizeof report->host[0]);
    assert_non_null(report);
    report->hosts = HOSTS;
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct rnl_doctor_host *d = &report->host[h];
        *d = (struct rnl_doctor_host){
            .name = name[h], .ranks = 2, .answered = true, .has_facts = true, .has_paths = true};
        d->facts = (struct rnl_host_facts){.release = "0.1",
                                           .kernel = "6.1",
                                           .clock = "tsc",
                                           .kernel_major = 6,
                                           .cores = 4,
                                           .allowed = 4,
                                           .can = RNL_CAN_ALL,
                                           .interfaces = 1,
                                           .port_first = 32768,
                                           .port_last = 60999,
                                           .files = 1024,
                                           .files_hard = 4096,
                                           .processes = 5000,
                                           .addresses = RNL_FACTS_NO_LIMIT,
                                           .memlock = 64 * MIB,
                                           .memory = 8192 * MIB,
                                           .memory_free = 4096 * MIB,
                                           .group_memory = RNL_FACTS_NO_LIMIT,
                                           .receive_bytes = 212992};
        d->info.addresses = 1;
        d->info.address[0] = (struct rnl_host_address){.interface = "eth0"};
        d->path = calloc(HOSTS, sizeof *d->path);
        assert_non_null(d->path);
        good_path(&d->path[1 - h], h, 1 - h);
        memcpy(d->info.address[0].ip, report->host[h].path[1 - h].ip, 16);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rnl_findings_free(&all);
    rnl_doctor_free(report);
    return 0;
}

/* Draws again. The report has to be one that is healthy but for one thing. */
static void is_found(enum rnl_severity severity, const char *code, const char *host, const char *other)
{
    rnl_findings_free(&all);
    rnl_findings_draw(report, &all);
    assert_int_equal(all.n, 1);
    assert_string_equal(all.at[0].code, code);
    assert_int_equal(all.at[0].severity, severity);
    assert_string_equal(all.at[0].host, host);
    assert_true(other ? all.at[0].other && strcmp(all.at[0].other, other) == 0 : !all.at[0].other);
    assert_true(strlen(all.at[0].text) > 20 && strlen(all.at[0].remedy) > 5 && strlen(all.at[0].ask) > 5);
}

static void a_healthy_report_has_no_findings(void **state)
{
    (void)state;
    rnl_findings_draw(report, &all);
    assert_int_equal(all.n, 0);
}

static void each_fact_that_is_wrong_is_one_finding(void **state)
{
    struct rnl_doctor_host *h = &report->host[1];
    struct rnl_host_facts *f = &h->facts, good = *f;
    (void)state;
#define PLANT(field, value, severity, code)  \
    do {                                     \
        f->field = value;                    \
        is_found(severity, code, "b", NULL); \
        *f = good;                           \
    } while (0)
    PLANT(kernel_major, 4, RNL_FINDING_STOPS, "kernel");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_MEMFD, RNL_FINDING_STOPS, "sandbox");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_PASS, RNL_FINDING_STOPS, "sandbox");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_PIDFD, RNL_FINDING_STOPS, "sandbox");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_MEMBARRIER, RNL_FINDING_HINDERS, "sandbox");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_UDP, RNL_FINDING_STOPS, "udp");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_LOOPBACK, RNL_FINDING_HINDERS, "loopback");
    PLANT(can, RNL_CAN_ALL & ~RNL_CAN_PROC, RNL_FINDING_HINDERS, "proc");
    PLANT(interfaces, 0, RNL_FINDING_STOPS, "no address");
    PLANT(clock[0], 'h', RNL_FINDING_HINDERS, "clock");
    PLANT(cores, 8, RNL_FINDING_NOTE, "affinity");
    PLANT(quota_percent, 150, RNL_FINDING_HINDERS, "quota");
    PLANT(load_percent, 900, RNL_FINDING_NOTE, "load");
    PLANT(files_hard, 40, RNL_FINDING_STOPS, "descriptors");
    PLANT(addresses, 30 * MIB, RNL_FINDING_STOPS, "addresses");
    PLANT(processes, 3, RNL_FINDING_STOPS, "processes");
    PLANT(group_memory, 100 * MIB, RNL_FINDING_HINDERS, "memory");
    PLANT(port_last, 32770, RNL_FINDING_STOPS, "ports");
    PLANT(memlock, 65536, RNL_FINDING_NOTE, "memlock");
    PLANT(receive_bytes, 65536, RNL_FINDING_HINDERS, "receive buffer");
    PLANT(ptrace_scope, 1, RNL_FINDING_NOTE, "ptrace");
#undef PLANT
    h->ranks = 5;
    is_found(RNL_FINDING_HINDERS, "cores", "b", NULL);
    h->ranks = 2;
    h->clock_ns = -INT64_C(5000000000);
    is_found(RNL_FINDING_NOTE, "time of day", "b", NULL);
    assert_non_null(strstr(all.at[0].text, "5.0 s behind"));
}

static void each_path_that_is_wrong_is_one_finding(void **state)
{
    struct rnl_path_report *p = &report->host[1].path[0], good = *p;
    (void)state;
#define PLANT(field, value, severity, code) \
    do {                                    \
        p->result.field = value;            \
        is_found(severity, code, "b", "a"); \
        *p = good;                          \
    } while (0)
    PLANT(counts.came, 380, RNL_FINDING_HINDERS, "loss");
    PLANT(counts.came, 399, RNL_FINDING_NOTE, "loss");
    PLANT(counts.reordered, 30, RNL_FINDING_HINDERS, "reorder");
    PLANT(counts.reordered, 1, RNL_FINDING_NOTE, "reorder");
    PLANT(counts.repeated, 2, RNL_FINDING_NOTE, "repeat");
    PLANT(passes, 1372, RNL_FINDING_HINDERS, "mtu");
    PLANT(done, 0, RNL_FINDING_HINDERS, "unsteady");
    PLANT(least_ns, 20000000, RNL_FINDING_NOTE, "far");
#undef PLANT
}

static void a_path_that_does_not_work_says_why(void **state)
{
    struct rnl_path_report *p = &report->host[0].path[1], *back = &report->host[1].path[0];
    struct rnl_probe_attempt *w = &p->attempts.address[0];
    (void)state;
    p->agreed = back->agreed = 0;
    w->works = 0;
    back->attempts.heard = 0;
    is_found(RNL_FINDING_STOPS, "firewall", "a", "b");
    assert_non_null(strstr(all.at[0].remedy, "from a to b in the firewall of b"));
    back->attempts.heard = 1;
    is_found(RNL_FINDING_STOPS, "one way", "a", "b");
    assert_non_null(strstr(all.at[0].remedy, "from b to a in the firewall of a"));
    w->sys_errno = ECONNREFUSED;
    is_found(RNL_FINDING_STOPS, "firewall", "a", "b");
    w->sys_errno = EPERM;
    w->from_own_kernel = 1;
    is_found(RNL_FINDING_STOPS, "firewall", "a", "b");
    assert_non_null(strstr(all.at[0].ask, "administrator of a"));
    w->sys_errno = ENETUNREACH;
    is_found(RNL_FINDING_STOPS, "route", "a", "b");
    w->only_short = 1;
    is_found(RNL_FINDING_STOPS, "mtu", "a", "b");
}

static void a_dead_address_beside_one_that_works_is_a_note(void **state)
{
    struct rnl_probe_failure *seen = &report->host[0].path[1].attempts;
    (void)state;
    seen->addresses = 2;
    seen->address[1] =
        (struct rnl_probe_attempt){.ip = {[10] = 0xff, [11] = 0xff, [12] = 172, [13] = 17, [15] = 1}, .port = 700};
    is_found(RNL_FINDING_NOTE, "dead address", "a", "b");
}

static void a_host_that_did_not_answer_hides_nothing_of_the_others(void **state)
{
    struct rnl_doctor_host *h = &report->host[1];
    (void)state;
    snprintf(h->why, sizeof h->why, "no such host is known");
    h->answered = h->has_facts = h->has_paths = false;
    is_found(RNL_FINDING_STOPS, "agent", "b", NULL);
    h->other_release = true;
    is_found(RNL_FINDING_STOPS, "version", "b", NULL);
    report->host[0].facts.files_hard = 1;
    rnl_findings_free(&all);
    rnl_findings_draw(report, &all);
    assert_int_equal(all.n, 2);
}

static void the_worst_comes_first(void **state)
{
    (void)state;
    report->host[0].facts.memlock = 0;
    report->host[0].path[1].result.counts.came = 300;
    report->host[1].facts.kernel_major = 3;
    rnl_findings_draw(report, &all);
    assert_int_equal(all.n, 3);
    assert_int_equal(all.at[0].severity, RNL_FINDING_STOPS);
    assert_int_equal(all.at[1].severity, RNL_FINDING_HINDERS);
    assert_int_equal(all.at[2].severity, RNL_FINDING_NOTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_healthy_report_has_no_findings),
        TEST(each_fact_that_is_wrong_is_one_finding),
        TEST(each_path_that_is_wrong_is_one_finding),
        TEST(a_path_that_does_not_work_says_why),
        TEST(a_dead_address_beside_one_that_works_is_a_note),
        TEST(a_host_that_did_not_answer_hides_nothing_of_the_others),
        TEST(the_worst_comes_first),
    };
    return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}
