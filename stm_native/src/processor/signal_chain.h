/* Our signal handler among those of others. */
#ifndef SPECSTREAM_SIGNAL_CHAIN_H
#define SPECSTREAM_SIGNAL_CHAIN_H

void ss_signals_take_front(void);

#endif
