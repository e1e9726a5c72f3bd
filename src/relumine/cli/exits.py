"""Exit codes, the same for every command.

===  =====================================================================================
  0  done: the network was recovered, the file was written
  1  not recovered: the answer is "no", and the message says why
  2  bad input: an option, a file or its content cannot be used; nothing was computed
  3  stopped early (time limit or Ctrl-C): the best network so far was written
  4  an optional package is missing; the message names it
 70  a fault of relumine itself; --debug shows where
 74  a file could not be written: disk full, no permission; the message names it
130  aborted by a second Ctrl-C (or one before there was anything to save)
===  =====================================================================================
"""

# 70, 74: EX_SOFTWARE and EX_IOERR of sysexits.h; 130: what a shell says of SIGINT
FAILED, BAD_INPUT, STOPPED, MISSING_PACKAGE, FAULT, NOT_WRITTEN, ABORTED = 1, 2, 3, 4, 70, 74, 130
