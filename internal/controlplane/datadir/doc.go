// Package datadir defines the layout of Slipway's data directory and controls access to it. It names all
// paths ([Dir]), creates the directory with mode 0700, checks whether this binary can read its format, and
// holds the lock that excludes other processes ([Open]). It also stores the instance ID, the state of the
// running process (run.json) and of its supervisor (supervision.json) for other processes, and the flags of
// the last start (flags.json) for the next one. It writes files atomically and durably ([WriteFile]), reads
// the free disk space, and removes the files of Slipway. The content of certificates, etcd data and logs is
// managed by other packages. `slipway up` and `slipway manager` open the directory; other commands and package
// controlplane read and write its files.
package datadir
