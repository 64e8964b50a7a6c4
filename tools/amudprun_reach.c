/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amudprun_reach.c - `amudprun --reach FILE OPTION... -- HOST COMMAND`: in the place of ssh, for a job whose workers a
 * spawner has started. Executes the command on that host, by the door of src/amudp/door.h that FILE has the address of.
 */
#include "amudp/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { UNREACHED = 255 /* as ssh */ };

static int find(const char *file, const char *host, char address[RNL_DOOR_ADDRESS], char port[8])
{
    char line[512], name[RNL_DOOR_HOST];
    FILE *f = fopen(file, "re");
    int found = 0;
    if (f == NULL)
        return 0;
    if (fseek(f, RNL_PLACE_KEY, SEEK_SET) == 0)
        while (!found && fgets(line, sizeof line, f) != NULL)
            found = sscanf(line, "host %255s %63s %7s", name, address, port) == 3 && strcmp(name, host) == 0;
    (void)fclose(f);
    return found;
}

static struct rnl_channel *reach(const char *file, const char *host)
{
    unsigned char key[RNL_PLACE_KEY];
    char address[RNL_DOOR_ADDRESS], port[8];
    if (rnl_amudp_place_key(file, key) < 0)
        return NULL;
    if (!find(file, host, address, port)) {
        fprintf(stderr, "amudprun: %s does not say where %s is\n", file, host);
        return NULL;
    }
    int fd = rnl_amudp_call(address, port);
    if (fd < 0) {
        fprintf(stderr, "amudprun: cannot reach %s at %s, port %s: %s\n", host, address, port, strerror(errno));
        return NULL;
    }
    struct rnl_channel *c = rnl_amudp_channel_to(fd, key);
    sodium_memzero(key, sizeof key);
    if (c == NULL)
        fprintf(stderr, "amudprun: who answers for %s at %s, port %s, does not belong to the job\n", host, address,
                port);
    return c;
}

/* Our input goes there, in a process of its own, so that neither direction waits for the other. */
static int send_input(struct rnl_channel *c)
{
    unsigned char bytes[RNL_CHANNEL_TEXT];
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child > 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (ssize_t n = 1; n > 0 && getppid() == parent;) {
        n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (rnl_channel_send(c, 'i', bytes, n > 0 ? (size_t)n : 0) < 0)
            break;
    }
    _exit(0);
}

int rnl_amudp_reach(int argc, char **argv)
{
    const char *file = argc > 2 ? argv[2] : NULL;
    int i = 3;
    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    AMX_VerboseErrors = 1;
    if (i + 3 != argc) {
        fprintf(stderr, "amudprun: --reach is for the master's use\n");
        return UNREACHED;
    }
    signal(SIGPIPE, SIG_IGN);
    struct rnl_channel *c = reach(file, argv[i + 1]);
    if (c == NULL || rnl_channel_send(c, 'c', argv[i + 2], strlen(argv[i + 2])) < 0 || !send_input(c))
        return UNREACHED;
    close(STDIN_FILENO);
    while (rnl_channel_wait(c, -1) == RNL_CHANNEL_MESSAGE) {
        int to = c->type == 'e' ? STDERR_FILENO : STDOUT_FILENO;
        if (c->type == 'q' && c->bytes == sizeof(int32_t)) {
            int32_t status;
            memcpy(&status, c->text, sizeof status);
            return status & 0xff;
        }
        if (c->type == 'q' || (c->bytes > 0 && rnl_channel_pour(c, to) < 0))
            break;
        if (c->bytes == 0)
            close(to);
    }
    fprintf(stderr, "amudprun: the connection to %s has ended\n", argv[i + 1]);
    return UNREACHED;
}
