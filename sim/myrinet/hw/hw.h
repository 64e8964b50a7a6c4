/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hw.h - hosts, I/O buses, cards and the Myrinet between them, on the virtual time of sim/engine: one tick is a
 * picosecond. Protocols are not known here: the card runs whatever firmware it is loaded with, tasks run host code.
 *
 * Caught and reported, never simulated on: a DMA to or from a page that is not pinned, an engine that is started while
 * it works, a buffer that changes while it is on the wire or on the bus, a byte that is sent or transferred before it
 * has come, a packet longer than the room for it, a place of a host's ring that is written again before the program has
 * taken what is there. The first such fault stops the run; myri_hw_run fails with what happened, where and when.
 *
 * Processors of cards run ahead of the events, as far as nothing can reach them: up to the next event, and up to a
 * packet's way through the network beyond the slowest other processor (hw.c). */
#ifndef MYRI_HW_H
#define MYRI_HW_H

#include "sim/engine/coro.h"
#include "sim/engine/engine.h"
#include "sim/myrinet/hw/lanai.h"
#include "sim/myrinet/hw/machine.h"
#include "sim/myrinet/hw/nic.h"

enum {
    MYRI_HW_NODES = 32,
    MYRI_HW_TASKS = 8,
    MYRI_HW_MEMORY = 16 << 20, /* bytes of each host */
    MYRI_HW_PAGE_LEAST = 1024, /* as machine.h has it */
    MYRI_HW_PACKET = 20 << 10
};

enum myri_hw_lane {
    MYRI_LANE_HOST,
    MYRI_LANE_BUS,
    MYRI_LANE_FIRMWARE,
    MYRI_LANE_DMA,
    MYRI_LANE_SEND,
    MYRI_LANE_RECEIVE,
    MYRI_LANES,
    MYRI_LANE_MEASURED = MYRI_LANES /* of no part of the machine: what an experiment measures (experiments/run.h) */
};
/* What something did from one tick to another; `what` may end with the machine. */
typedef void myri_hw_tracer(void *arg, uint32_t node, enum myri_hw_lane, uint64_t from, uint64_t to, const char *what,
                            uint64_t amount);

struct myri_hw_packet {
    struct rnl_sim_event event;
    struct myri_hw *hw;
    struct myri_hw_packet *chain;               /* of all there are */
    struct myri_hw_packet *next;                /* at the port of its destination, or free */
    uint32_t from, to, n, held;                 /* held: its sender's engine waits for it */
    uint64_t duration_ps, entered_ps, leave_ps; /* leave: the sender has it no sooner out of its SRAM */
    uint64_t released_ps;                       /* the part of the duration that its sender lets out of the SRAM */
    int bad;                                    /* its CRC will not be right: */
    uint32_t bad_bit;                           /* this one is wrong */
    int aside;                                  /* another way through the network holds it, whole */
    int limited, gone;                          /* it leaves in parts; it is lost, when it has arrived */
    uint64_t ordinal;                           /* of those of its sender */
    uint8_t bytes[MYRI_HW_PACKET];
};

/* The card: processor, SRAM, and three engines. */
enum { MYRI_HW_SEEN = 256 }; /* parts of a turn; what is behind them is shown with the last one */
enum { MYRI_HW_RELEASES = 32, MYRI_HW_PAUSES = 16 };
struct myri_hw_parts;
struct myri_ether_port;
struct myri_card {
    struct myri_lanai cpu; /* first */
    struct myri_hw *hw;
    uint32_t id, status, reg[NIC_REGISTERS];
    uint32_t irq_waits; /* bits of HIRQ that HIEN holds back */
    struct rnl_sim_event timer;
    int idle; /* its program waits for an event: proved, not guessed (card.c) */
    uint64_t busy_from_ps;
    struct {
        uint64_t ps, instructions, stalls, accesses;
    } period; /* of an idle turn */
    struct {
        int valid;
        uint32_t status, flags, waited, r[32];
        uint64_t stores, instructions, stalls, accesses, at_ps;
    } turn; /* what the processor was like at its last look at the status */
    struct {
        uint64_t at_ps[MYRI_HW_SEEN], stores, shown_ps; /* of this turn; shown: up to when it has been traced */
        uint32_t n;
        uint8_t part, of[MYRI_HW_SEEN];
    } seen; /* parts of the program, where a trace asks for them (trace.c) */
    struct {
        struct rnl_sim_event begin, done;
        int moving;           /* bytes, between these two: it takes SRAM's rate */
        int stalled;          /* at its limit */
        uint32_t base, reach; /* bytes before what it moves now, and with it */
        uint32_t settled;     /* bytes put into SRAM, or found unchanged there */
        uint32_t limit;       /* SRAM address, set for the next transfer; 0: none */
        struct {
            uint64_t from_ps, to_ps;
        } pause[MYRI_HW_PAUSES]; /* others have the bus, between two bursts */
        uint32_t pauses;
        uint64_t asked_ps;       /* when the firmware started it */
        uint64_t from_ps, to_ps; /* on the bus */
        uint64_t burst_ps;       /* since when in one burst behind the other */
        uint64_t shown_ps;       /* up to when its bursts have been traced */
        uint32_t host, sram, n, direction;
        uint8_t *snapshot;
    } dma;
    struct {
        struct rnl_sim_event enter, go, done, release;
        int flowing; /* its packet flows into another card: sooner than it sees that, by the signal's way back */
        int moving;  /* bytes onto the wire: it may also wait for its start, or for the network */
        int stalled; /* at its limit, which the packet's other end knows by now */
        struct myri_hw_packet *packet;
        struct myri_hw_packet *on; /* the same, until it has arrived */
        uint32_t at, n, to;
        uint32_t reach, settled, limit; /* bytes released; found unchanged as they left; as for the host DMA */
        struct {
            uint64_t at_ps; /* when the receiver's end can know it */
            uint32_t reach;
        } releases[MYRI_HW_RELEASES];
        uint32_t released; /* of these */
        uint64_t from_ps, entered_ps;
        uint8_t *snapshot;
    } send;
    struct {
        struct rnl_sim_event arm, done, stall;
        struct myri_hw_packet *first, *last; /* at its port, in order; the first may be on its way in */
        int open, flowing, stalled;          /* stalled: all that its sender has released is here */
        uint32_t settled;                    /* bytes put into SRAM */
        uint64_t from_ps;
        uint64_t left_ps, paced_ps, speed; /* of the packet that flows: at full speed; since when; in millionths */
        uint64_t newest[MYRI_HW_NODES];    /* packet that has come from each: its ordinal */
    } port;
    uint64_t net_speed;  /* that its SRAM leaves to each packet that leaves it or comes, in millionths of the link's */
    uint64_t slack_used; /* bytes of its packets that the network holds */
    uint64_t ordinal;    /* of packets sent */
    uint64_t skipped;    /* instructions of idle turns that were added up */
    uint64_t worked;     /* instructions of turns that stored something */
    struct {
        uint64_t stores, instructions;
    } began; /* this turn, as `worked` counts it */
};

struct myri_hw_count {
    uint64_t packets_sent, packets_received, packets_bad, packets_lost, bytes_sent, bytes_received;
    uint64_t packets_overtaken; /* by one that left the same node for the same node later */
    uint64_t dma_to_host, dma_from_host, stores, loads, interrupts, refused; /* refused: tasks outside their map */
    uint64_t bytes_stored, bytes_copied; /* by hosts: to their cards; from one place of their memory to another */
};

enum { MYRI_PIN_TABLE = 2 };
struct myri_host {
    struct myri_hw *hw;
    uint32_t id;
    uint8_t *memory;
    uint8_t pins[MYRI_HW_MEMORY / MYRI_HW_PAGE_LEAST];  /* a page each; MYRI_PIN_TABLE: a table */
    uint32_t taken;                                     /* pages, in a row */
    uint8_t owner[MYRI_HW_MEMORY / MYRI_HW_PAGE_LEAST]; /* the space (os/space.h) that a page is of; 0: of none */
    uint32_t spaces, dealt_from;                        /* how many; the first page that one of them has had */
    uint64_t dealt;
    struct {
        uint32_t flag, stride, count; /* host address of the first place's last word; bytes; places, 0 = no ring */
    } ring;
    uint64_t bus_free_ps;
    struct rnl_sim_event interrupt;
    uint32_t interrupt_value, interrupt_waits; /* bits; being served, and come meanwhile */
    int interrupt_served;
    /* The driver: how long an interrupt takes the processor, and what it has done at the end of that. */
    uint64_t (*driver_cost)(struct myri_host *, uint32_t value);
    void (*driver)(struct myri_host *, uint32_t value);
    void *driver_arg;
    uint64_t stolen_ps;  /* by interrupts, not yet paid by the tasks */
    uint64_t letters_ps; /* until then it serves interrupts of letters over Ethernet (os/mail.c) */
    uint64_t interrupts; /* served, ever */
    uint32_t tasks;
    struct myri_task *task[MYRI_HW_TASKS];
};

/* A process on a host, with a processor of its own. */
struct myri_task {
    struct rnl_sim_coro coro;
    struct myri_host *host;
    void (*fn)(struct myri_task *, void *arg);
    void *arg;
    unsigned char *stack;
    uint32_t map_from, map_to; /* the SRAM that it may store to and load from */
    uint32_t watch, watch_to;  /* the host addresses it polls, from the first to the last, or MYRI_HW_NO_WATCH */
    int serves;                /* what it does is the handling of interrupts: they take no time from it */
    int computes;              /* it has to know of interrupts */
    int ended, daemon;
    struct {
        const char *call; /* that takes its time, or NULL: for who asks why a run does not end */
        uint32_t at;      /* what it looks at, or MYRI_HW_NO_WATCH */
        int host;         /* that is in the host's memory, else on its card */
        uint64_t since_ps;
    } in;
    struct myri_process *process; /* it shares processors with others (os/process.h); NULL: it has its own */
};
#define MYRI_HW_NO_WATCH 0xffffffffu

/* An address for a card, of a frame that is a space's. */
#define MYRI_SPACE_ADDRESS(space, at) ((uint32_t)(space) << 24 | (uint32_t)(at))
_Static_assert(MYRI_HW_MEMORY <= 1 << 24, "the space's number lies above an address");

struct myri_hw {
    struct rnl_sim *sim;
    struct myri_machine machine;
    uint32_t nodes, page, pages; /* page: bytes; pages of each host */
    struct myri_card *card;
    struct myri_host *host;
    struct rnl_sim_event processors;
    struct myri_card *executing; /* whose processor runs between two events, or NULL */
    struct myri_hw_packet *free_packets, *all_packets;
    uint32_t tasks_left;
    uint64_t horizon_ps; /* the run is stopped with a fault beyond this */
    /* Execute idle turns instead of adding them up, and let no processor run ahead: the same, slower. */
    int no_skip;
    int looks_across; /* polls of host memory go across the I/O bus instead: the flags are taken to be on the card */
    uint64_t bad_per_2_32, lost_per_2_32, late_per_2_32; /* of packets: CRC wrong; gone; overtaken by later ones */
    int reorder;           /* each packet has a way of its own, so that they come in any order */
    const char *for_order; /* who takes the network to keep order: the first overtaken packet is a fault; or NULL */
    struct myri_hw_count count;
    struct { /* the cable beside the Myrinet (os/ether.h): nothing is on it from then on; hosts that have datagrams */
        uint64_t free_ps;
        struct myri_ether_port *port[MYRI_HW_NODES];
    } ether;
    struct {
        uint64_t at_ps;
        uint32_t from, to, bytes;
    } first_bad; /* packet whose CRC was wrong, if count.packets_bad is not 0 */
    myri_hw_tracer *tracer;
    void *tracer_arg;
    const char *lines;           /* of the firmware, as its .lines file has them, to name them in faults; or NULL */
    struct myri_hw_parts *parts; /* of the firmware, for traces; or NULL */
    char fault[256];
    struct { /* machine values, in ticks */
        uint64_t head, send_start, receive_start, dma_start, dma_setup[2], burst, store, combined, load, poll, miss,
            operation, window_trap, interrupt;
    } t;
};

/* All nodes run the same firmware on the same machine. 0, RNL_ERR_ARG, RNL_ERR_NO_MEMORY. */
int myri_hw_new(const struct myri_machine *, uint32_t nodes, uint64_t seed, const void *object, size_t bytes,
                struct myri_hw **out);
void myri_hw_free(struct myri_hw *);
/* Before it is started: traces name the functions of its firmware from now on, from the text of its .lines file. 0 or
 * RNL_ERR_NO_MEMORY. */
int myri_hw_name_parts(struct myri_hw *, const char *lines);
/* The host code has prepared its cards: starts their processors. RNL_ERR_ARG without fw_main in the object. */
int myri_hw_power(struct myri_hw *);
/* Until all tasks have ended. RNL_ERR_ABORTED with the fault, or as nothing more happens and tasks wait. */
int myri_hw_run(struct myri_hw *);
void myri_hw_fault(struct myri_hw *, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t myri_hw_now(const struct myri_hw *);

/* -- set-up, without time: what the driver and the daemons have done before -- */

struct myri_task *myri_hw_task(struct myri_hw *, uint32_t node, void (*fn)(struct myri_task *, void *), void *arg);
/* Marks a task that a run does not wait for. NULL: none. */
void myri_hw_daemon(struct myri_task *);
/* Whole pages, physically in a row, zero; pinned or not. The address, or MYRI_HW_NO_WATCH when memory is full. */
uint32_t myri_host_take(struct myri_host *, uint32_t bytes, int pinned);
/* Takes pinned pages for the kernel, which writes words there, each of them whole, also while a card reads them. */
uint32_t myri_host_take_table(struct myri_host *, uint32_t bytes);
/* The library has a ring of `count` places there, each of which ends with a word that the card writes last and the
 * program clears: a place that is written again before that is a fault. */
void myri_host_ring(struct myri_host *, uint32_t at, uint32_t stride, uint32_t count);
uint32_t myri_card_symbol(struct myri_hw *, const char *name);
void myri_card_poke(struct myri_card *, uint32_t at, uint32_t value);
uint32_t myri_card_peek(const struct myri_card *, uint32_t at);
/* What the host's store to the card's HIEN does. */
void myri_card_enable(struct myri_card *, uint32_t mask);
void myri_card_poke_byte(struct myri_card *, uint32_t at, uint8_t value);

/* -- inside a task; each call takes the time that the machine takes for it -- */

void myri_task_spend(struct myri_task *, uint64_t ps, const char *what);
void myri_task_operate(struct myri_task *, uint32_t operations, const char *what);
/* A call that lies so many frames deep, the program's own first: where frames lie in register windows, each that is
 * beyond what they hold is written out by a trap, and fetched by one afterwards. */
void myri_task_nest(struct myri_task *, uint32_t frames);
/* What a loop costs that reads words of host memory and stores them to the card, beside the stores: an operation for a
 * word, in the shade of the store before where that takes longer. gather reads them, too. */
void myri_task_copy_loop(struct myri_task *, uint32_t words);
void myri_task_gather(struct myri_task *, uint32_t from, uint32_t *out, uint32_t words);
/* Over the bus, in order. Outside the task's map they do nothing, are counted, and return -1. */
int myri_task_store(struct myri_task *, uint32_t sram, uint32_t value);
int myri_task_store_words(struct myri_task *, uint32_t sram, const uint32_t *, uint32_t words);
/* Stores words through write-combining buffers, in lines of 32 bytes; plain stores where the machine has none. */
int myri_task_combine(struct myri_task *, uint32_t sram, const uint32_t *, uint32_t words);
int myri_task_load(struct myri_task *, uint32_t sram, uint32_t *out);
/* A store to the register that says which bits of its card's interrupts reach this host. */
void myri_task_enable(struct myri_task *, uint32_t mask);
/* A store to the register that resets the card's processor: its program begins again, with the memory as it is. What
 * its engines are at goes on. */
void myri_task_restart(struct myri_task *);
/* Loads until the word is `wanted`, or no longer less than it (counters), with the machine's pause between two looks:
 * who looks all the time slows his own card's transfers down to half. 0, or -1: not in the map, or the machine has a
 * fault. */
int myri_task_await(struct myri_task *, uint32_t sram, uint32_t wanted, int counter, uint32_t *out);
/* In host memory. Copying costs the copy rate; word and set_word are for what is in the cache, and cost nothing. */
void myri_task_copy(struct myri_task *, uint32_t to, uint32_t from, uint32_t bytes);
uint32_t myri_host_word(const struct myri_host *, uint32_t at);
void myri_host_set_word(struct myri_host *, uint32_t at, uint32_t v);
/* Polls a cached word until it is not `old`, or until the tick: the word as it is then. */
uint32_t myri_task_poll(struct myri_task *, uint32_t at, uint32_t old, uint64_t until);
/* Polls n cached words in turn, from number `first` on: the number of one that is not as it was, or n. */
uint32_t myri_task_poll_among(struct myri_task *, const uint32_t *at, const uint32_t *old, uint32_t n, uint32_t first,
                              uint64_t until);
/* Polls for a program that looks by calling a library: each call takes so many operations, and the word is seen in the
 * first that begins after it has come. */
uint32_t myri_task_poll_by_call(struct myri_task *, uint32_t at, uint32_t old, uint64_t until, uint32_t operations);
/* Computes so long, or until the host has served more than `seen` interrupts, whose time is not computing's: what is
 * left to compute. */
uint64_t myri_task_compute(struct myri_task *, uint64_t ps, uint64_t seen);
/* Until the host has served more than `seen` interrupts; how many it has. */
uint64_t myri_task_await_interrupt(struct myri_task *, uint64_t seen);
/* One look. */
uint32_t myri_task_look(struct myri_task *, uint32_t at);

/* -- among the files of hw/ -- */

/* Rises as long as the machine goes on: calls of tasks, and turns of processors. */
extern volatile unsigned long myri_hw_progress;
/* Returns 1 for the outermost call of a task, which tells myri_task_leaves so as it ends. */
static inline int myri_task_enters(struct myri_task *t, const char *call, uint32_t at, int host)
{
    myri_hw_progress = myri_hw_progress + 1;
    if (t->in.call)
        return 0;
    t->in.call = call;
    t->in.at = at;
    t->in.host = host;
    t->in.since_ps = myri_hw_now(t->host->hw);
    return 1;
}
static inline void myri_task_leaves(struct myri_task *t, int entered)
{
    if (entered)
        t->in.call = NULL;
}
/* stuck.c: a processor's fault; why tasks have not ended. */
void myri_card_fault(struct myri_card *);
int myri_hw_stuck(const struct myri_hw *);
int myri_card_init(struct myri_card *, struct myri_hw *, uint32_t id, const void *object, size_t bytes);
void myri_card_fini(struct myri_card *);
/* An event reaches the card at this tick: it is brought up to it, and looks again. */
void myri_card_wake(struct myri_card *, uint64_t at);
void myri_card_restart(struct myri_card *);
void myri_card_pause(struct myri_card *, uint64_t ps); /* its processor stands still for so long, from a task */
/* One turn of its loop ended, and the next begins: later, if turns between them were added up. */
void myri_card_turn(struct myri_card *, uint64_t ended_ps, uint64_t begins_ps);
void myri_card_last_turn(struct myri_card *);
void myri_card_executes(struct myri_lanai *, uint32_t at);
void myri_card_share(struct myri_card *); /* the SRAM, among processor and engines; in events only */
void myri_net_pace(struct myri_card *);   /* its share has changed, and so when the packets that leave it or come end */
void myri_net_init(struct myri_card *);
void myri_net_enter(struct rnl_sim *, struct rnl_sim_event *);
void myri_net_arm(struct rnl_sim *, struct rnl_sim_event *);
int myri_bus_dma(struct myri_card *, uint64_t at); /* the engine's registers are set */
/* marks.c: how far the engines are at this tick, and what of their bytes is in the SRAM by then. */
uint32_t myri_card_mark(struct myri_card *, uint32_t reg, uint64_t at);
void myri_card_settle(struct myri_card *, uint64_t at);
int myri_card_there(struct myri_card *, uint32_t from, uint32_t to, const char *what);
/* A limit that an engine starts with lies within what it moves, or is 0; else 0, and a fault. */
int myri_card_limited(struct myri_card *, uint32_t limit, uint32_t from, uint32_t n, const char *engine);
void myri_bus_move_limit(struct myri_card *, uint32_t reach, uint64_t at);
uint64_t myri_net_flowed(const struct myri_card *, uint64_t at); /* into it, since it was looked at last */
void myri_net_begin(struct myri_card *, uint32_t reach);
void myri_net_release(struct myri_card *, uint32_t reach, uint64_t at);
void myri_hw_trace(struct myri_hw *, uint32_t node, enum myri_hw_lane, uint64_t from, uint64_t to, const char *what,
                   uint64_t amount);
void myri_host_written(struct myri_host *, uint32_t at, uint32_t n);
void myri_host_interrupt(struct myri_host *, uint64_t at, uint32_t value);
void myri_host_interrupted(struct myri_host *); /* one has been served: who computes knows */
int myri_host_init(struct myri_host *, struct myri_hw *, uint32_t id);
void myri_host_fini(struct myri_host *);

#endif
