/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_order.c - the protocol of group/ by itself (order.h): worlds of a few members, drawn from a seed, in which
 * messages between two members keep their order and nothing else does. Members die at any time, with a part of what
 * they had sent lost, leave, join, are slow, or are taken for dead though they live. Whoever is left has delivered the
 * same, or has been given the state that it made, which here is all of its history; what a survivor had sent has been
 * delivered once, in its order, and what the others had sent without a gap.
 *     unit-group-order [SEEDS [FIRST]] */
#include "api/group/order.h"
#include "base/chance.h"
#include "runnel/runnel.h"
#include "support/unit.h"

enum {
    MEMBERS = 12,
    LONGEST = 3000,
    DEAD = 255 /* kind: the sender is dead */,
    STEPS = 4000,
    HISTORY = 8192,
    QUIET = 1000000
};

struct packet {
    struct packet *next;
    struct rnl_order_head head;
    bool has_item;
    size_t n;
    unsigned char data[];
};
struct channel {
    struct packet *first, **last;
};
struct entry { /* of a history: a message, or a view with a hash of its members */
    uint64_t seq, what;
    uint32_t sender;
};
struct node {
    struct world *w;
    struct rnl_order *o;
    uint32_t self;
    bool dead, ended, slow, leaving, opened, first, loaded;
    int status;
    uint64_t sent;
    unsigned entries;
    struct entry history[HISTORY];
    uint64_t delivered[MEMBERS];
    uint32_t replies; /* messages still to be sent from within deliveries */
};
struct world {
    uint64_t seed, draws;
    bool has_state; /* those who join are given it */
    uint32_t size;
    uint64_t budget;
    bool suspicions, evil;
    struct node *node;
    struct channel channel[MEMBERS][MEMBERS];
    uint64_t kinds[RNL_ORDER_KINDS];
    uint32_t host[MEMBERS];
    uint32_t crossed[HISTORY][MEMBERS]; /* the epoch in which a place was last sent to that host from another one */
};

static unsigned seeds = 400;
static uint64_t first_seed = 1;
static uint64_t kinds[RNL_ORDER_KINDS], views, again, forwarded, joined, asked_again;

static uint64_t draw(struct world *w, uint64_t below)
{
    return rnl_chance_below(rnl_chance(w->seed, 1, 0, w->draws++), below);
}

static void put(struct world *w, uint32_t from, uint32_t to, const struct rnl_order_head *head, const void *data,
                size_t n, bool has_item)
{
    struct channel *c = &w->channel[from][to];
    struct packet *p = malloc(sizeof *p + n);
    assert_non_null(p);
    *p = (struct packet){.head = *head, .has_item = has_item, .n = n};
    if (n)
        memcpy(p->data, data, n);
    if (!c->first)
        c->last = &c->first;
    *c->last = p;
    c->last = &p->next;
}

static struct packet *take(struct channel *c)
{
    struct packet *p = c->first;
    if (p && !(c->first = p->next))
        c->last = &c->first;
    return p;
}

static void do_send(void *ctx, uint32_t to, const struct rnl_order_head *head, struct rnl_order_item *item)
{
    struct node *n = ctx;
    assert_true(to < n->w->size && to != n->self && !n->dead);
    n->w->kinds[head->kind]++;
    asked_again += head->kind == RNL_ORDER_JOIN && (head->flags & RNL_ORDER_ROOT);
    if (head->kind == RNL_ORDER_MESSAGE && !n->w->evil && n->w->host[to] != n->w->host[n->self]) {
        uint32_t *crossed = &n->w->crossed[head->seq % HISTORY][n->w->host[to]];
        assert_true(*crossed != head->epoch);
        *crossed = head->epoch;
    }
    if (!n->w->node[to].dead)
        put(n->w, n->self, to, head, item ? item->data : NULL, item ? item->bytes : 0, item);
}

static unsigned char byte_of(uint32_t sender, uint64_t lseq, size_t i)
{
    return (unsigned char)(sender * 31 + lseq * 7 + i);
}

static void app_send(struct node *n)
{
    size_t bytes = draw(n->w, 4) ? draw(n->w, 64) : draw(n->w, LONGEST);
    struct rnl_order_item *item = rnl_order_item_new(n->o, bytes);
    assert_non_null(item);
    n->sent++;
    for (size_t i = 0; i < bytes; i++)
        item->data[i] = byte_of(n->self, n->sent, i);
    rnl_order_send(n->o, item);
}

static void do_deliver(void *ctx, const struct rnl_order_item *item)
{
    struct node *n = ctx;
    if ((!n->w->has_state || n->w->evil) && n->entries == 0) { /* it begins with the view that it is new in */
        n->entries = (unsigned)item->seq - 1;
        joined += !n->first;
    }
    struct entry *e = &n->history[n->entries++];
    assert_true(n->entries < HISTORY && !n->ended);
    *e = (struct entry){.seq = item->seq, .sender = item->view ? UINT32_MAX : item->sender};
    assert_int_equal(item->seq, n->entries);
    if (item->view) {
        for (uint32_t i = 0; i < item->bytes; i++)
            e->what = e->what * 31 + item->data[i];
        return;
    }
    e->what = item->lseq;
    if (n->w->evil)
        return;
    if (!n->w->has_state && !n->first && n->delivered[item->sender] == 0)
        n->delivered[item->sender] = item->lseq - 1;
    assert_int_equal(item->lseq, ++n->delivered[item->sender]);
    for (size_t i = 0; i < item->bytes; i++)
        assert_int_equal(item->data[i], byte_of(item->sender, item->lseq, i));
    if (n->replies && rnl_order_room(n->o)) {
        n->replies--;
        app_send(n);
    }
}

static void do_ended(void *ctx, int status)
{
    struct node *n = ctx;
    assert_false(n->ended);
    n->ended = true;
    n->status = status;
}

/* The state is what was delivered from each sender, and then the history, in pieces. */
static void put_piece(struct node *n, const void *data, size_t bytes)
{
    struct rnl_order_item *item = rnl_order_item_new(n->o, bytes);
    assert_non_null(item);
    memcpy(item->data, data, bytes);
    assert_true(rnl_order_put_state(n->o, item));
}

static void do_save(void *ctx)
{
    enum { PIECE = 50 };
    struct node *n = ctx;
    if (!n->w->has_state)
        return;
    put_piece(n, n->delivered, sizeof n->delivered);
    for (unsigned i = 0; i < n->entries; i += PIECE)
        put_piece(n, &n->history[i], (n->entries - i < PIECE ? n->entries - i : PIECE) * sizeof *n->history);
}

static void do_load(void *ctx, const struct rnl_order_item *piece)
{
    struct node *n = ctx;
    if (n->w->evil)
        return;
    assert_true(!n->first && !n->ended);
    if (n->entries == 0 && n->delivered[MEMBERS - 1] == 0 && piece->bytes == sizeof n->delivered && !n->loaded) {
        memcpy(n->delivered, piece->data, sizeof n->delivered);
        n->loaded = true;
        joined++;
        return;
    }
    memcpy(&n->history[n->entries], piece->data, piece->bytes);
    n->entries += piece->bytes / sizeof *n->history;
}

static const struct rnl_order_ops ops = {
    .send = do_send, .deliver = do_deliver, .ended = do_ended, .save = do_save, .load = do_load};

/* What others sent to a member before is there when it opens, and what it is told of the dead. */
static void open_member(struct node *n)
{
    n->opened = true;
    rnl_order_begin(n->o);
    for (uint32_t i = 0; i < n->w->size; i++)
        if (n->w->node[i].dead && !n->w->channel[i][n->self].first)
            rnl_order_died(n->o, i);
}

static void world_new(struct world *w, uint64_t seed, bool joins)
{
    static const uint8_t methods[] = {0, RNL_ORDER_PB, RNL_ORDER_BB, RNL_ORDER_REQUEST};
    *w = (struct world){.seed = seed};
    w->size = (uint32_t)(1 + draw(w, MEMBERS - 1));
    w->budget = w->size * (4096 + draw(w, 5) * 8192);
    w->node = calloc(w->size, sizeof *w->node);
    assert_non_null(w->node);
    const uint32_t flat = (uint32_t)(1 + draw(w, 10));
    const uint8_t method = methods[draw(w, 4)], majority = draw(w, 8) == 0;
    const uint32_t in_first = joins ? 1 + (uint32_t)draw(w, w->size) : w->size; /* anywhere */
    bool first[MEMBERS] = {false};
    for (uint32_t n = 0; n < in_first; n++) {
        uint32_t i = (uint32_t)draw(w, w->size);
        while (first[i])
            i = (i + 1) % w->size;
        first[i] = true;
    }
    w->has_state = draw(w, 4) != 0;
    const uint64_t hosts = 1 + draw(w, w->size);
    for (uint32_t i = 0; i < w->size; i++)
        w->host[i] = (uint32_t)draw(w, hosts);
    for (uint32_t i = 0; i < w->size; i++) {
        struct node *n = &w->node[i];
        const struct rnl_order_options opt = {.self = i,
                                              .size = w->size,
                                              .first = first,
                                              .host = hosts > 1 ? w->host : NULL,
                                              .budget = w->budget,
                                              .small = 100,
                                              .flat = flat,
                                              .method = method,
                                              .majority = majority};
        *n = (struct node){.w = w, .self = i, .replies = 20, .first = first[i], .o = rnl_order_new(&opt, &ops, n)};
        assert_non_null(n->o);
    }
    for (uint32_t i = 0; i < w->size; i++)
        if (first[i])
            open_member(&w->node[i]);
}

static void world_free(struct world *w)
{
    struct packet *p;
    for (uint32_t i = 0; i < w->size; i++)
        for (uint32_t j = 0; j < w->size; j++)
            while ((p = take(&w->channel[i][j])))
                free(p);
    for (uint32_t i = 0; i < w->size; i++)
        rnl_order_free(w->node[i].o);
    free(w->node);
}

/* What the dead member had sent arrives up to some place, and then the word of its death. */
static void kill_member(struct world *w, uint32_t k)
{
    const struct rnl_order_head death = {.kind = DEAD};
    struct packet *p;
    w->node[k].dead = true;
    for (uint32_t j = 0; j < w->size; j++) {
        uint64_t keep = draw(w, 20);
        struct packet **at = &w->channel[k][j].first;
        for (; *at && keep; keep--)
            at = &(*at)->next;
        while ((p = *at)) {
            *at = p->next;
            free(p);
        }
        w->channel[k][j].last = at;
        if (j != k && !w->node[j].dead && (w->node[j].opened || w->channel[k][j].first))
            put(w, k, j, &death, NULL, 0, false);
        while ((p = take(&w->channel[j][k])))
            free(p);
    }
}

static void check_kept(const struct node *n)
{
    const struct rnl_order_stats *s = rnl_order_get_stats(n->o);
    uint64_t most = n->w->budget + 2 * (uint64_t)n->w->size * (LONGEST + RNL_ORDER_ITEM_COST) +
                    (s->views + 1) * (64 + RNL_ORDER_ITEM_COST);
    if (!n->w->evil)
        assert_true(s->kept_bytes <= most);
}

/* Delivers the first packet of a channel. */
static bool arrive(struct world *w, uint32_t from, uint32_t to)
{
    struct node *n = &w->node[to];
    struct packet *p = n->dead || !n->opened ? NULL : take(&w->channel[from][to]);
    if (!p)
        return false;
    if (p->head.kind == DEAD) {
        rnl_order_died(n->o, from);
    } else {
        struct rnl_order_item *item = p->has_item ? rnl_order_item_new(n->o, p->n) : NULL;
        if (item && p->n)
            memcpy(item->data, p->data, p->n);
        rnl_order_input(n->o, from, &p->head, item);
    }
    free(p);
    check_kept(n);
    return true;
}

static bool arrive_any(struct world *w, bool to_slow)
{
    uint32_t pairs = w->size * w->size, start = (uint32_t)draw(w, pairs);
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t at = (start + i) % pairs;
        if ((to_slow || !w->node[at % w->size].slow) && arrive(w, at / w->size, at % w->size))
            return true;
    }
    return false;
}

static bool is_there(const struct node *n)
{
    return !n->dead && !n->ended && n->opened;
}

enum { NOBODY_GOES, SOME_LEAVE, SOME_DIE_TOO };

static void step(struct world *w, int goes)
{
    uint64_t what = draw(w, 1000);
    struct node *n = &w->node[draw(w, w->size)];
    if (!n->opened && what < 30 && !n->dead) {
        open_member(n);
    } else if (what < 400 && is_there(n) && !n->leaving && n->sent < 300) {
        if (rnl_order_room(n->o))
            app_send(n);
    } else if (what < 990) {
        (void)arrive_any(w, draw(w, 100) == 0);
    } else if (what < 993 && is_there(n) && goes == SOME_DIE_TOO) {
        kill_member(w, n->self);
    } else if (what < 995 && goes && is_there(n) && !n->leaving && rnl_order_is_idle(n->o)) {
        n->leaving = true;
        n->replies = 0;
        rnl_order_leave(n->o);
    } else if (what < 998) {
        n->slow = !n->slow;
    } else if (w->suspicions && is_there(n)) {
        uint32_t other = (uint32_t)draw(w, w->size);
        if (other != n->self)
            rnl_order_died(n->o, other);
    }
}

/* One that left is like one that died, but where nobody died it has not delivered what others have not. */
static void check_agreement(const struct world *w, int goes)
{
    const struct node *best = NULL;
    for (uint32_t i = 0; i < w->size; i++)
        if (is_there(&w->node[i]) && (!best || w->node[i].entries > best->entries))
            best = &w->node[i];
    for (uint32_t i = 0; i < w->size && best; i++) {
        const struct node *n = &w->node[i];
        bool left = n->ended && n->status == 0 && !n->dead;
        if (!left && is_there(n) && rnl_order_is_blank(n->o)) { /* nobody is left that could let it in */
            assert_int_equal(best->entries, 0);
            continue;
        }
        unsigned begin = 0;
        while (begin < n->entries && n->history[begin].seq == 0)
            begin++;
        if (!is_there(n) && !(left && goes != SOME_DIE_TOO))
            continue;
        if (!left)
            assert_int_equal(n->entries, best->entries);
        assert_true(begin == 0 || (!n->first && !w->has_state));
        for (unsigned k = begin; k < n->entries && k < best->entries; k++) {
            if (best->history[k].seq == 0)
                continue;
            assert_int_equal(n->history[k].sender, best->history[k].sender);
            assert_int_equal(n->history[k].what, best->history[k].what);
        }
        if (!left)
            assert_true(best->delivered[i] == n->sent || (n->sent && !best->delivered[i] && !w->has_state));
        assert_true(left || rnl_order_is_idle(n->o));
    }
}

static void run(uint64_t seed, int goes, bool suspicions, bool joins)
{
    struct world *w = malloc(sizeof *w);
    assert_non_null(w);
    world_new(w, seed, joins);
    w->suspicions = suspicions;
    for (unsigned i = 0; i < STEPS; i++)
        step(w, goes);
    unsigned rest = 0;
    while (arrive_any(w, true))
        assert_true(++rest < QUIET);
    if (!suspicions)
        check_agreement(w, goes);
    for (uint32_t i = 0; i < w->size; i++) {
        const struct rnl_order_stats *s = rnl_order_get_stats(w->node[i].o);
        views += s->views;
        again += s->again;
        forwarded += s->forwarded;
        assert_true(s->refused == 0);
        assert_true(w->node[i].dead || w->node[i].ended || rnl_order_is_idle(w->node[i].o));
    }
    for (unsigned k = 0; k < RNL_ORDER_KINDS; k++)
        kinds[k] += w->kinds[k];
    world_free(w);
    free(w);
}

static uint64_t running; /* a case that fails says which seed it was */
static int say_seed(void **state)
{
    (void)state;
    print_message("# last seed %llu\n", (unsigned long long)running);
    return 0;
}

static void all_deliver_the_same_where_nobody_dies(void **state)
{
    (void)state;
    for (running = first_seed; running < first_seed + seeds / 2; running++)
        run(running, running % 2 ? NOBODY_GOES : SOME_LEAVE, false, false);
}

static void survivors_deliver_the_same_and_all_that_they_sent(void **state)
{
    (void)state;
    for (running = first_seed; running < first_seed + seeds; running++)
        run(running, SOME_DIE_TOO, false, false);
    for (unsigned k = RNL_ORDER_PB; k < RNL_ORDER_JOIN; k++)
        if (seeds >= 400 && kinds[k] == 0) {
            print_message("# no message of kind %u was sent\n", k);
            fail();
        }
    assert_true(seeds < 400 || (views && again && forwarded));
}

static void members_taken_for_dead_do_not_hold_up_the_others(void **state)
{
    (void)state;
    for (running = first_seed; running < first_seed + seeds; running++)
        run(running, SOME_DIE_TOO, true, false);
}

static void who_joins_delivers_what_the_others_do(void **state)
{
    (void)state;
    joined = 0;
    for (running = first_seed; running < first_seed + seeds; running++)
        run(running, running % 3 == 0 ? SOME_LEAVE : NOBODY_GOES, false, true);
    assert_true(seeds < 400 || joined > seeds);
}

static void members_may_die_while_others_join(void **state)
{
    (void)state;
    joined = asked_again = 0;
    for (running = first_seed; running < first_seed + 2 * (uint64_t)seeds; running++)
        run(running, SOME_DIE_TOO, false, true);
    for (unsigned k = RNL_ORDER_PB; k < RNL_ORDER_OUT; k++)
        assert_true(seeds < 400 || kinds[k]);
    assert_true(seeds < 400 || (joined && asked_again));
}

static void who_joins_does_not_hold_up_others_when_members_are_taken_for_dead(void **state)
{
    (void)state;
    for (running = first_seed; running < first_seed + seeds; running++)
        run(running, SOME_DIE_TOO, true, true);
}

static void a_member_that_takes_nothing_in_holds_back_all_senders(void **state)
{
    (void)state;
    for (running = 1; running < 40; running++) {
        struct world *w = malloc(sizeof *w);
        assert_non_null(w);
        world_new(w, running, false);
        for (uint32_t i = 0; i < w->size; i++)
            w->node[i].replies = 0;
        w->node[w->size - 1].slow = true;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t i = 0; i < w->size && w->size > 1; i++)
                if (!w->node[i].slow && rnl_order_room(w->node[i].o) && w->node[i].sent < 500)
                    app_send(&w->node[i]), moved = true;
            while (arrive_any(w, false))
                moved = true;
        }
        for (uint32_t i = 0; i + 1 < w->size; i++)
            assert_false(rnl_order_room(w->node[i].o));
        w->node[w->size - 1].slow = false;
        while (arrive_any(w, true))
            continue;
        for (uint32_t i = 0; i < w->size; i++)
            assert_true(rnl_order_room(w->node[i].o) && rnl_order_is_idle(w->node[i].o));
        check_agreement(w, NOBODY_GOES);
        world_free(w);
        free(w);
    }
}

/* The last member says anything at all. Memory stays bounded and nothing is touched that is not there; the others may
 * end. */
static void whatever_a_member_says_does_no_harm(void **state)
{
    (void)state;
    for (running = first_seed; running < first_seed + seeds; running++) {
        struct world *w = malloc(sizeof *w);
        assert_non_null(w);
        world_new(w, running, running % 2);
        w->evil = true;
        for (unsigned i = 0; i < STEPS; i++) {
            unsigned char junk[64] = {0};
            const struct rnl_order_head head = {.kind = (uint8_t)draw(w, RNL_ORDER_KINDS + 2),
                                                .flags = (uint8_t)draw(w, 4),
                                                .epoch = (uint32_t)(1 + draw(w, 3)),
                                                .seq = draw(w, 20) ? draw(w, 12) : draw(w, UINT64_MAX),
                                                .lseq = draw(w, 20) ? 1 + draw(w, 4) : draw(w, UINT64_MAX),
                                                .member = (uint32_t)draw(w, w->size + 1),
                                                .stable = (uint32_t)draw(w, 3)};
            for (unsigned k = 0; k < sizeof junk / 4; k++)
                junk[4 * k] = (unsigned char)draw(w, w->size + 1);
            uint32_t to = (uint32_t)draw(w, w->size);
            if (to != w->size - 1 && draw(w, 3) == 0)
                put(w, w->size - 1, to, &head, junk, draw(w, 3) ? (w->size + 7) / 8 : draw(w, sizeof junk), draw(w, 2));
            step(w, NOBODY_GOES);
        }
        while (arrive_any(w, true))
            continue;
        world_free(w);
        free(w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(all_deliver_the_same_where_nobody_dies, say_seed),
        cmocka_unit_test_teardown(survivors_deliver_the_same_and_all_that_they_sent, say_seed),
        cmocka_unit_test_teardown(members_taken_for_dead_do_not_hold_up_the_others, say_seed),
        cmocka_unit_test_teardown(who_joins_delivers_what_the_others_do, say_seed),
        cmocka_unit_test_teardown(members_may_die_while_others_join, say_seed),
        cmocka_unit_test_teardown(who_joins_does_not_hold_up_others_when_members_are_taken_for_dead, say_seed),
        cmocka_unit_test_teardown(a_member_that_takes_nothing_in_holds_back_all_senders, say_seed),
        cmocka_unit_test_teardown(whatever_a_member_says_does_no_harm, say_seed),
    };
    if (argc > 1)
        seeds = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
