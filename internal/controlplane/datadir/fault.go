package datadir

import (
	"errors"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults. `slipway up` recognizes ReasonHeld and explains it.
const (
	ReasonHeld     = "DataDirectoryHeld"     // another process holds the directory
	reasonUnusable = "DataDirectoryUnusable" // it cannot be created, read or written
	reasonForeign  = "DataDirectoryForeign"  // it contains other files
	reasonFormat   = "DataDirectoryNewer"    // a newer version of Slipway wrote it
	reasonSkipped  = "DataDirectoryTooOld"   // an intermediate version must be run first
)

// HeldFault returns the fault for a directory that another process holds, with the holder. [Open] returns it, and
// `slipway manager` does before it opens the directory.
func HeldFault(dir Dir, h Holder) *fault.Fault {
	if h.PID == 0 {
		return fault.New(fault.Invalid, ReasonHeld,
			"data directory %s is held by another process; choose another --data-dir, or stop that process", dir)
	}
	return fault.New(fault.Invalid, ReasonHeld,
		"data directory %s is held by process %d on %s since %s; choose another --data-dir, or end that process and what it runs with \"slipway down --data-dir %s\"",
		dir, h.PID, h.Host, h.Since.Local().Format(time.DateTime), dir)
}

// unusable returns the fault for a directory or file that cannot be used. The functions that open or read them call it.
func unusable(dir Dir, err error) *fault.Fault {
	var damaged *damagedError
	if errors.As(err, &damaged) {
		return fault.New(fault.Invalid, reasonUnusable,
			"a file of data directory %s is damaged (%v): move the file away to continue without it, or restore the directory from a backup",
			dir, err).From(err)
	}
	return fault.New(fault.Invalid, reasonUnusable,
		"data directory %s cannot be used (%v); make it writable for this user, or choose another --data-dir", dir, err).From(err)
}

// newer returns the fault for a directory that a newer version of Slipway wrote. [CheckFormat] and [RecordVersions]
// call it.
func newer(dir Dir, found string) *fault.Fault {
	return fault.New(fault.Invalid, reasonFormat,
		"data directory %s has format %q and this slipway reads up to %d; use the slipway that wrote it, or choose another --data-dir",
		dir, found, format)
}
