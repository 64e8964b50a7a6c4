/* hello.c - each rank greets rank 0. Start it with: runnel run -n 4 ./hello */
#include <runnel/fm.h>
#include <stdio.h>
#include <unistd.h>

static int on_greeting(FM_stream *stream, unsigned sender)
{
    char word[6];
    int process;
    FM_receive(word, stream, sizeof word);
    FM_receive(&process, stream, sizeof process);
    printf("%s from rank %u of %lu, process %d\n", word, sender, FM_numnodes, process);
    return FM_CONTINUE;
}

int main(void)
{
    int process = getpid();
    FM_initialize();
    FM_register_handler(1, on_greeting);
    FM_stream *stream = FM_begin_message(0, 6 + sizeof process, 1);
    FM_send_piece(stream, "hello", 6);
    FM_send_piece(stream, &process, sizeof process);
    FM_end_message(stream);
    FM_finalize(); /* runs handlers until all ranks are here and every message has been handled */
    return 0;
}
