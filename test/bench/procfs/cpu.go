package procfs

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// CPU is what became of the time of all processors since the machine began.
type CPU struct {
	All time.Duration
	// Stolen is what the host gave to others though this machine wanted it. It is zero on a machine that is no one's guest.
	Stolen time.Duration
}

// ReadCPU reads the processors' time from proc, the file system at /proc.
func ReadCPU(proc fs.FS) (CPU, error) {
	data, err := fs.ReadFile(proc, "stat")
	if err != nil {
		return CPU{}, fmt.Errorf("read the processors' time: %w", err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	const last = 8 // of the times that do not contain each other, proc_stat(5): steal
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return CPU{}, fmt.Errorf("processors' time: want %d numbers after \"cpu\" in %q", last, line)
	}
	var c CPU
	for _, field := range fields[1 : last+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return CPU{}, fmt.Errorf("processors' time: %w", err)
		}
		c.Stolen = time.Duration(ticks) * tick
		c.All += c.Stolen
	}
	return c, nil
}

// StolenSince is which part of the processors' time since then was stolen, 0 to 1.
func (c CPU) StolenSince(before CPU) float64 {
	if c.All <= before.All {
		return 0
	}
	return float64(c.Stolen-before.Stolen) / float64(c.All-before.All)
}
