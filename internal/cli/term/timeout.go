package term

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// AddWaitTimeout adds --wait-timeout for a command that always waits. A time that is not positive is rejected. "wait
// cluster", "hosts reboot" and "snapshots take" have it, and the commands of [AddConfirmFlags].
func AddWaitTimeout(set *pflag.FlagSet, value time.Duration, usage string) *time.Duration {
	set.Var(&waitTimeout{value: &value}, "wait-timeout", usage)
	return &value
}

// AddOptionalWaitTimeout adds --wait-timeout for a command that does not wait if the time is 0. "create", "delete" and
// "upgrade cluster" have it.
func AddOptionalWaitTimeout(set *pflag.FlagSet, value time.Duration, usage string) *time.Duration {
	set.Var(&waitTimeout{value: &value, isOptional: true}, "wait-timeout", usage+"; 0: do not wait")
	return &value
}

// waitTimeout implements pflag.Value.
type waitTimeout struct {
	value      *time.Duration
	isOptional bool
}

// Set implements pflag.Value.
func (w *waitTimeout) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0 && w.isOptional:
		return errors.New("cannot be negative; 0 does not wait")
	case d <= 0 && !w.isOptional:
		return errors.New("must be positive")
	}
	*w.value = d
	return nil
}

// String implements pflag.Value.
func (w *waitTimeout) String() string {
	if w.value == nil { // pflag calls it for the zero value
		return "0s"
	}
	return w.value.String()
}

// Type implements pflag.Value. The text is part of --help.
func (w *waitTimeout) Type() string { return "duration" }
