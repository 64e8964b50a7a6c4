/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hamlyn.c - Hamlyn as its processes call it: what has not the key of a slot, leaves it, or comes when it has been
 * taken back, is refused, counted and told to its owner, and touches nothing; processes of a node do not disturb each
 * other. */
#include "sim/myrinet/systems/added.h"
#include "sim/myrinet/systems/hamlyn/host.h"
#include "tests/myrinet/sides.h"

static const char *firmware; /* the system of this round: the same with each of two firmwares */

/* ---- processes of two or three nodes, which call the library themselves ---- */

enum { SOME = 4, AREA = 1 << 16, EMPTY = 0x5a5a5a5a };
struct world {
    struct myri_hw *hw;
    uint32_t n;
    struct myri_space space[SOME];
    struct ham ham[SOME];
    struct myri_task *task[SOME];
    struct ham_address slot[SOME]; /* that a sender has been given */
    uint32_t got[SOME], wrong, seed;
    int reorder, fast; /* fast: transfers start at once */
};

static uint32_t on_card(const struct ham *h, size_t field)
{
    return myri_card_peek(h->card_of, h->card + (uint32_t)field);
}

static uint32_t in_process(const struct ham *h, size_t field)
{
    return on_card(h, offsetof(struct ham_card, process) + h->process * sizeof(struct ham_process) + field);
}

static uint32_t me(const struct world *w, const struct myri_task *t)
{
    uint32_t k = 0;
    while (w->task[k] != t)
        k++;
    return k;
}

/* Process k is of node where[k]; numbers of processes count up on each. */
static void make_world(struct world *w, uint32_t n, const uint32_t *where,
                       void (*const *fn)(struct myri_task *, void *))
{
    struct myri_machine m = machine("H-PP");
    if (w->fast)
        assert_int_equal(myri_machine_set(&m, "dma_setup=0"), 0);
    const struct myri_data *d = myri_system_object(myri_system_find(firmware));
    uint32_t process[MYRI_HW_NODES] = {0}, nodes = 0;
    for (uint32_t k = 0; k < n; k++)
        nodes = where[k] >= nodes ? where[k] + 1 : nodes;
    assert_int_equal(myri_hw_new(&m, nodes, 3 + w->seed, d->bytes, d->n, &w->hw), 0);
    w->hw->horizon_ps = 5000000000000u;
    w->hw->reorder = w->reorder;
    w->n = n;
    for (uint32_t k = 0; k < n; k++) {
        assert_int_equal(myri_space_init(&w->space[k], &w->hw->host[where[k]]), 0);
        assert_int_equal(ham_open(&w->ham[k], w->hw, where[k], process[where[k]]++, &w->space[k], AREA, 0), 0);
        for (uint32_t at = 0; at < AREA; at += 4)
            myri_space_set_word(&w->space[k], NULL, w->ham[k].area + at, EMPTY);
    }
    for (uint32_t k = 0; k < n; k++) {
        w->task[k] = myri_hw_task(w->hw, where[k], fn[k], w);
        w->task[k]->map_from = w->ham[k].card + (uint32_t)(offsetof(struct ham_card, process) +
                                                           w->ham[k].process * sizeof(struct ham_process));
        w->task[k]->map_to = w->task[k]->map_from + (uint32_t)offsetof(struct ham_process, area_at);
    }
}

static void run_world(struct world *w)
{
    assert_string_equal(w->hw->fault, "");
    assert_int_equal(myri_hw_power(w->hw), 0);
    if (myri_hw_run(w->hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(w->wrong, 0);
    assert_int_equal(w->hw->count.refused, 0);
    for (uint32_t k = 0; k < w->n; k++) /* no place of a queue is kept for a message that will never be whole */
        assert_int_equal(in_process(&w->ham[k], offsetof(struct ham_process, promised)),
                         in_process(&w->ham[k], offsetof(struct ham_process, posted)));
}

static void end_world(struct world *w)
{
    for (uint32_t k = 0; k < w->n; k++)
        myri_space_fini(&w->space[k]);
    myri_hw_free(w->hw);
    memset(w, 0, sizeof *w);
}

/* How many words of the area's part are not as they were at first. */
static uint32_t touched(const struct world *w, uint32_t k, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t at = from; at < to; at += 4)
        n += myri_space_word((struct myri_space *)(uintptr_t)&w->space[k], NULL, w->ham[k].area + at) != EMPTY;
    return n;
}

static void fill(struct world *w, uint32_t k, uint32_t at, uint32_t bytes, uint32_t value)
{
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_space_set_word(&w->space[k], NULL, w->ham[k].area + at + i, value);
}

static void pause_us(struct myri_task *t, uint32_t us)
{
    myri_task_spend(t, us * (uint64_t)1000000, "wait");
}

/* ---- keys and bounds ---- */

enum { SLOT_AT = 8192, SLOT_BYTES = 12000, LONG = 9000 };
static const struct wrong_send {
    uint32_t high, low, offset, bytes, slot, reason, packets;
} wrongs[] = {
    {1, 0, 0, 8, 0, HAM_BAD_KEY, 1},
    {0, 1u << 31, 0, 8, 0, HAM_BAD_KEY, 1},
    {0x80000000, 0, 0, LONG, 0, HAM_BAD_KEY, 3},
    {0, 0, SLOT_BYTES - 4, 8, 0, HAM_OUT_OF_BOUNDS, 1},
    {0, 0, SLOT_BYTES, 4, 0, HAM_OUT_OF_BOUNDS, 1},
    {0, 0, SLOT_BYTES - LONG + 4, LONG, 0, HAM_OUT_OF_BOUNDS, 3},
    {0, 0, 0xfffffff8, 16, 0, HAM_OUT_OF_BOUNDS, 1},
    {0, 0, 0xffffe000, LONG, 0, HAM_OUT_OF_BOUNDS, 3},
    {0, 0, 2, 8, 0, HAM_OUT_OF_BOUNDS, 1},
    {0, 0, 0, 8, 5, HAM_BAD_SLOT, 1},
    {0, 0, 0, 8, HAM_SLOTS, HAM_BAD_SLOT, 1},
    {0, 0, 0, 8, 0xffff, HAM_BAD_SLOT, 1},
};
enum { WRONGS = sizeof wrongs / sizeof wrongs[0] };

static void wrong_sender(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[0], *owner = &w->ham[1];
    uint32_t all = 0;
    h->task = t;
    for (int i = 0; i < WRONGS; i++) {
        struct ham_address to = w->slot[0];
        to.key[0] ^= wrongs[i].high;
        to.key[1] ^= wrongs[i].low;
        to.slot += wrongs[i].slot;
        fill(w, 0, 0, wrongs[i].bytes, 0x11111111);
        ham_sent(h, ham_send(h, &to, wrongs[i].offset, h->area, wrongs[i].bytes, HAM_WITH_RECORD));
        pause_us(t, 1000);
        struct ham_trouble told = ham_trouble(owner);
        all += wrongs[i].packets;
        if (told.times == all && told.reason == wrongs[i].reason && told.node == 0 && told.process == 0 &&
            told.slot == to.slot)
            continue;
        w->wrong++;
        printf("%d: refused %u of %u, for reason %u, of slot %u\n", i, told.times, all, told.reason, told.slot);
    }
    w->wrong += touched(w, 1, 0, AREA) != 0;
    w->wrong += on_card(owner, offsetof(struct ham_card, refused)) != all;
    struct ham_address nobody = w->slot[0];
    nobody.process = 3;
    (void)ham_send(h, &nobody, 0, h->area, 8, HAM_WITH_RECORD);                               /* nobody to tell */
    ham_sent(h, ham_send(h, &w->slot[0], SLOT_BYTES - LONG, h->area, LONG, HAM_WITH_RECORD)); /* that is right */
}

static void one_receiver(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham_record r;
    w->ham[1].task = t;
    w->wrong += ham_slot_create(&w->ham[1], w->ham[1].area + SLOT_AT, SLOT_BYTES, &w->slot[0]) < 0;
    if (!ham_meta_poll(&w->ham[1], &r, 1000000000000u))
        return;
    w->got[1]++;
    w->wrong += r.node != 0 || r.process != 0 || r.slot != 0 || r.offset != SLOT_BYTES - LONG || r.bytes != LONG;
    w->wrong += touched(w, 1, SLOT_AT + SLOT_BYTES - LONG, SLOT_AT + SLOT_BYTES) != LONG / 4;
    w->wrong += touched(w, 1, 0, AREA) != LONG / 4;
    w->wrong += ham_meta_poll(&w->ham[1], &r, myri_hw_now(w->hw) + 1000000000);
}

static void late_sender(struct myri_task *t, void *arg)
{
    pause_us(t, 100); /* the slot has been made by then */
    wrong_sender(t, arg);
}

static void a_forged_key_and_what_leaves_a_slot_touch_nothing_and_are_told(void **state)
{
    (void)state;
    static struct world w;
    make_world(&w, 2, (const uint32_t[]){0, 1},
               (void (*const[])(struct myri_task *, void *)){late_sender, one_receiver});
    run_world(&w);
    assert_int_equal(w.got[1], 1);
    assert_int_equal(on_card(&w.ham[1], offsetof(struct ham_card, errors)), 1); /* for a process that is not there */
    end_world(&w);
}

/* What a process may not send: not from its area, to itself, too long for a request. */
static void careless(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[0];
    h->task = t;
    struct ham_address to = w->slot[0], own = {0, 0, 0, 100, {0, 0}}, far = to;
    far.node = 9;
    ham_sent(h, ham_send(h, &to, 0, h->area + AREA - 4, 1000, 0));
    ham_sent(h, ham_send(h, &to, 0, h->area - 4096, 1000, 0));
    ham_sent(h, ham_send(h, &to, 0, h->area + 2, 1000, 0));
    ham_sent(h, ham_send(h, &own, 0, h->area, 8, 0));
    ham_sent(h, ham_send(h, &own, 0, h->area, 1000, 0));
    ham_sent(h, ham_send(h, &far, 0, h->area, 8, 0));
    const uint32_t too_long[] = {to.node << 24, HAM_STORED, to.key[0], to.key[1], 0, 0};
    uint32_t entry = t->map_from + h->sent++ % HAM_QUEUE * (uint32_t)sizeof(struct ham_request);
    myri_task_store_words(t, entry + 4, too_long, 6);
    myri_task_store(t, entry, HAM_SHORT + 4);
    pause_us(t, 1000);
    w->wrong +=
        on_card(h, offsetof(struct ham_card, errors)) != 7 || touched(w, 1, 0, AREA) || w->hw->count.packets_sent;
    ham_sent(h, ham_send(h, &to, 0, h->area + AREA - 1000, 1000, 0));
    pause_us(t, 1000);
    w->wrong += touched(w, 1, 0, AREA); /* it has sent what was there, as at first */
    w->got[0] = (uint32_t)w->hw->count.packets_received;
}

static void idle(struct myri_task *t, void *arg)
{
    (void)t;
    (void)arg;
}

static void a_process_sends_from_its_own_area_alone(void **state)
{
    (void)state;
    static struct world w;
    make_world(&w, 2, (const uint32_t[]){0, 1}, (void (*const[])(struct myri_task *, void *)){careless, idle});
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, AREA + 4, &w.slot[0]), -1);
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area - 4, 8, &w.slot[0]), -1);
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area + AREA, 4, &w.slot[0]), -1);
    for (int i = 0; i < HAM_SLOTS; i++)
        assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, AREA, &w.slot[0]), 0);
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, AREA, &w.slot[1]), -1);
    run_world(&w);
    assert_int_equal(w.got[0], 1);
    end_world(&w);
}

/* ---- a slot is taken back while packets fly ---- */

enum { PIECES = 20000, ROUNDS = 12 };

/* Streams into what it was given last, again and again. */
static void streamer(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    uint32_t k = me(w, t);
    struct ham *h = &w->ham[k];
    h->task = t;
    fill(w, k, 0, PIECES, 0x22222222);
    for (uint32_t i = 0; i < 100 && !w->hw->fault[0]; i++) {
        ham_sent(h, ham_send(h, &w->slot[k], 0, h->area, PIECES, HAM_WITH_RECORD));
        pause_us(t, 230); /* or a network that reorders holds more and more, with keys of long ago */
    }
    w->got[k] = 1;
}

static void revoker(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[1];
    struct ham_record r;
    h->task = t;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t before = w->slot[0].key[0];
        pause_us(t, 400 + 37 * round);
        ham_slot_revoke(h, &w->slot[0]);
        fill(w, 1, 0, PIECES, EMPTY);
        pause_us(t, 300);
        w->wrong += touched(w, 1, 0, AREA) != 0;
        w->wrong += ham_slot_create(h, h->area, PIECES, &w->slot[0]) < 0 || w->slot[0].slot != 0;
        w->wrong += w->slot[0].key[0] == before;
        while (ham_meta_poll(h, &r, myri_hw_now(w->hw))) /* of before */
            ;
        if (!ham_meta_poll(h, &r, myri_hw_now(w->hw) + 5000000000u)) /* a new one comes as a whole */
            w->wrong++;
        w->wrong += touched(w, 1, 0, PIECES) != PIECES / 4 || r.bytes != PIECES;
        w->got[1]++;
    }
    while (!w->got[0])
        pause_us(t, 100);
    while (ham_meta_poll(h, &r, myri_hw_now(w->hw) + 1000000000))
        ;
    w->wrong += ham_trouble(h).times == 0;
}

static void counting_neighbour(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham_record r;
    w->ham[2].task = t;
    while (w->got[2] < 100 && ham_meta_poll(&w->ham[2], &r, myri_hw_now(w->hw) + 20000000000u)) {
        w->wrong += r.bytes != PIECES || r.node != 2;
        w->got[2]++;
    }
}

static void a_slot_that_is_taken_back_is_touched_no_more(void **state)
{
    (void)state;
    static struct world w;
    for (int reorder = 0; reorder < 2; reorder++) {
        w.reorder = reorder;
        make_world(&w, 4, (const uint32_t[]){0, 1, 1, 2},
                   (void (*const[])(struct myri_task *, void *)){streamer, revoker, counting_neighbour, streamer});
        assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, PIECES, &w.slot[0]), 0);
        assert_int_equal(ham_slot_create(&w.ham[2], w.ham[2].area, PIECES, &w.slot[3]), 0);
        run_world(&w);
        assert_int_equal(w.got[1], ROUNDS);
        assert_int_equal(w.got[2], 100); /* the other process of that node has all of its own */
        assert_int_equal(ham_trouble(&w.ham[2]).times, 0);
        end_world(&w);
    }
}

/* ---- counters ---- */

enum { TURNS = 40, WIDE = 1000 };

/* Two places at the receiver; the next message goes when the one before the last has been looked at. */
static void placer(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    uint32_t k = me(w, t);
    struct ham *h = &w->ham[k];
    h->task = t;
    for (uint32_t m = 0; m < TURNS && !w->hw->fault[0]; m++) {
        while (m >= w->got[k] + 2)
            pause_us(t, 5);
        fill(w, k, (m & 1) * WIDE, WIDE, k << 16 | (m + 1));
        ham_sent(h, ham_send(h, &w->slot[k], (m & 1) * WIDE, h->area + (m & 1) * WIDE, WIDE, HAM_WITH_RECORD));
    }
}

static void judge(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[3];
    struct ham_record r;
    uint32_t seen[3][2] = {{0}};
    h->task = t;
    for (uint32_t all = 0; all < 3 * TURNS; all++) {
        if (!ham_meta_poll(h, &r, myri_hw_now(w->hw) + 20000000000u))
            return;
        uint32_t k = r.slot, place = r.offset / WIDE;
        if (k > 2 || place > 1 || r.node != w->ham[k].host->id || r.process != w->ham[k].process) {
            w->wrong++;
            return;
        }
        uint32_t at = h->area + k * 2 * WIDE + r.offset, first = myri_space_word(&w->space[3], NULL, at);
        w->wrong += first >> 16 != k || (first & 1) == place || (first & 0xffff) <= seen[k][place];
        for (uint32_t i = 0; i < WIDE; i += 4) /* all of it is there */
            w->wrong += myri_space_word(&w->space[3], NULL, at + i) != first;
        seen[k][place] = first & 0xffff;
        w->got[k]++;
    }
}

static void counters_of_two_senders_are_never_mixed(void **state)
{
    (void)state;
    static struct world w;
    for (uint32_t run = 0; run < 12; run++) {
        w.reorder = run > 0;
        w.seed = run;
        /* two processes of node 0 and one of node 2, whose messages have the same numbers */
        make_world(&w, 4, (const uint32_t[]){0, 0, 2, 1},
                   (void (*const[])(struct myri_task *, void *)){placer, placer, placer, judge});
        for (uint32_t node = 0; node < 3; node++)
            myri_card_poke(&w.hw->card[node], w.ham[0].card + (uint32_t)offsetof(struct ham_card, packet), 128);
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(ham_slot_create(&w.ham[3], w.ham[3].area + k * 2 * WIDE, 2 * WIDE, &w.slot[k]), 0);
        run_world(&w);
        assert_int_equal(w.got[0] + w.got[1] + w.got[2], 3 * TURNS);
        assert_int_equal(ham_trouble(&w.ham[3]).times, 0);
        assert_true(!run == !w.hw->count.packets_overtaken);
        end_world(&w);
    }
}

/* ---- a queue that nobody looks at ---- */

static void flooder(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[0];
    h->task = t;
    for (uint32_t i = 0; i < HAM_RECORDS + 88 && !w->hw->fault[0]; i++) {
        (void)ham_send(h, &w->slot[0], 0, h->area, 4, HAM_WITH_RECORD);
        (void)ham_send(h, &w->slot[3], 0, h->area, 4, HAM_WITH_RECORD); /* to the neighbour, who looks */
        (void)ham_send(h, &w->slot[0], 4, h->area, 4, 0);               /* that asks for no record */
    }
    ham_sent(h, h->sent - 1);
    w->got[0] = 1;
}

static void sleeper(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[1];
    struct ham_record r;
    h->task = t;
    while (!w->got[0])
        pause_us(t, 100);
    pause_us(t, 1000);
    struct ham_trouble told = ham_trouble(h);
    w->wrong += told.times != 88 || told.reason != HAM_QUEUE_FULL;
    while (ham_meta_poll(h, &r, myri_hw_now(w->hw) + 1000000))
        w->got[1]++;
}

static void looker(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham_record r;
    w->ham[2].task = t;
    while (ham_meta_poll(&w->ham[2], &r, myri_hw_now(w->hw) + 20000000000u))
        w->got[2]++;
}

static void a_full_queue_is_its_senders_fault_and_its_process_own(void **state)
{
    (void)state;
    static struct world w;
    make_world(&w, 3, (const uint32_t[]){0, 1, 1},
               (void (*const[])(struct myri_task *, void *)){flooder, sleeper, looker});
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, 8, &w.slot[0]), 0);
    assert_int_equal(ham_slot_create(&w.ham[2], w.ham[2].area, 8, &w.slot[3]), 0);
    run_world(&w);
    assert_int_equal(w.got[1], HAM_RECORDS);
    assert_int_equal(w.got[2], HAM_RECORDS + 88);
    assert_int_equal(ham_trouble(&w.ham[2]).times, 0);
    end_world(&w);
}

/* ---- more messages under way than there are counters ---- */

enum { FLOOD = 40, TWO_PACKETS = 128 };

static void flood_of_long_ones(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[0];
    h->task = t;
    for (uint32_t m = 0; m < FLOOD; m++) {
        fill(w, 0, m * TWO_PACKETS, TWO_PACKETS, m + 1);
        (void)ham_send(h, &w->slot[0], m * TWO_PACKETS, h->area + m * TWO_PACKETS, TWO_PACKETS, HAM_WITH_RECORD);
    }
    ham_sent(h, h->sent - 1);
}

static void judge_of_flood(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[1];
    struct ham_record r;
    uint32_t last = 0;
    h->task = t;
    while (ham_meta_poll(h, &r, myri_hw_now(w->hw) + 2000000000u)) {
        for (uint32_t i = 0; i < TWO_PACKETS; i += 4)
            w->wrong += myri_space_word(&w->space[1], NULL, h->area + r.offset + i) != r.offset / TWO_PACKETS + 1;
        last += r.offset / TWO_PACKETS >= FLOOD - HAM_OPEN;
        w->got[1]++;
    }
    w->wrong += last != HAM_OPEN; /* nothing that came before takes the counter of one of these */
}

static void who_has_too_many_messages_under_way_loses_the_older_ones(void **state)
{
    (void)state;
    static struct world w;
    uint32_t lost = 0;
    for (uint32_t run = 0; run < 20; run++) {
        w.reorder = w.fast = 1;
        w.seed = run;
        make_world(&w, 2, (const uint32_t[]){0, 1},
                   (void (*const[])(struct myri_task *, void *)){flood_of_long_ones, judge_of_flood});
        myri_card_poke(&w.hw->card[0], w.ham[0].card + (uint32_t)offsetof(struct ham_card, packet), TWO_PACKETS / 2);
        assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, FLOOD * TWO_PACKETS, &w.slot[0]), 0);
        run_world(&w);
        assert_true(ham_trouble(&w.ham[1]).times >= FLOOD - w.got[1]);
        lost += FLOOD - w.got[1];
        end_world(&w);
    }
    assert_true(lost > 10);
}

/* ---- memory that the system wants ---- */

enum { PAGE = 4096, LETTERS = 20 };

/* Short messages from pages that are out, long ones from the area after a copy of such pages; the area itself stays. */
static void writer(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[0];
    uint32_t mine = myri_space_map(&w->space[0], 2 * PAGE);
    h->task = t;
    for (uint32_t m = 0; m < LETTERS; m++) {
        for (uint32_t i = 0; i < 2 * PAGE; i += 4)
            myri_space_set_word(&w->space[0], NULL, mine + i, m + i);
        w->wrong += myri_space_page_out(&w->space[0], mine) < 0 || myri_space_page_out(&w->space[0], mine + PAGE) < 0;
        ham_sent(h, ham_send(h, &w->slot[0], 0, mine + PAGE - 8, 16, HAM_WITH_RECORD)); /* over the border */
        w->wrong += myri_space_page_out(&w->space[0], mine) < 0 || myri_space_page_out(&w->space[0], mine + PAGE) < 0;
        myri_space_copy(&w->space[0], t, h->area, mine, 2 * PAGE);
        w->wrong += myri_space_page_out(&w->space[0], h->area) == 0;
        ham_sent(h, ham_send(h, &w->slot[0], 16, h->area, 2 * PAGE, HAM_WITH_RECORD));
        while (w->got[1] <= m && !w->hw->fault[0])
            pause_us(t, 50);
    }
    w->wrong += w->space[0].page_outs != 4 * LETTERS || w->space[0].page_ins != 4 * LETTERS;
}

static void reader(struct myri_task *t, void *arg)
{
    struct world *w = arg;
    struct ham *h = &w->ham[1];
    struct ham_record r[2];
    h->task = t;
    for (uint32_t m = 0; m < LETTERS; m++) {
        for (uint32_t k = 0; k < 2; k++)
            if (!ham_meta_poll(h, &r[k], myri_hw_now(w->hw) + 20000000000u))
                return;
        for (uint32_t page = 0; page < AREA; page += PAGE)
            w->wrong += myri_space_page_out(&w->space[1], h->area + page) == 0;
        for (uint32_t i = 0; i < 16; i += 4)
            w->wrong += myri_space_word(&w->space[1], NULL, h->area + i) != m + PAGE - 8 + i;
        for (uint32_t i = 0; i < 2 * PAGE; i += 4)
            w->wrong += myri_space_word(&w->space[1], NULL, h->area + 16 + i) != m + i;
        w->got[1]++;
    }
}

static void pages_that_are_out_are_sent_and_those_of_an_area_stay(void **state)
{
    (void)state;
    static struct world w;
    make_world(&w, 2, (const uint32_t[]){0, 1}, (void (*const[])(struct myri_task *, void *)){writer, reader});
    assert_int_equal(ham_slot_create(&w.ham[1], w.ham[1].area, 16 + 2 * PAGE, &w.slot[0]), 0);
    run_world(&w);
    assert_int_equal(w.got[1], LETTERS);
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forged_key_and_what_leaves_a_slot_touch_nothing_and_are_told),
        cmocka_unit_test(a_process_sends_from_its_own_area_alone),
        cmocka_unit_test(a_slot_that_is_taken_back_is_touched_no_more),
        cmocka_unit_test(counters_of_two_senders_are_never_mixed),
        cmocka_unit_test(a_full_queue_is_its_senders_fault_and_its_process_own),
        cmocka_unit_test(who_has_too_many_messages_under_way_loses_the_older_ones),
        cmocka_unit_test(pages_that_are_out_are_sent_and_those_of_an_area_stay),
    };
    firmware = "hamlyn";
    int failed = cmocka_run_group_tests_name("hamlyn", tests, NULL, NULL);
    firmware = "hamlyn-tuned";
    return failed + cmocka_run_group_tests_name("hamlyn-tuned", tests, NULL, NULL);
}
