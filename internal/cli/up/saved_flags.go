package up

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// savedFlags lists the flags of `slipway up` that are stored for the next start. --node is stored separately, because a
// node that is no longer wanted must be removed. flags.detached passes them to the background process, and isRunning
// compares them, so every saved flag needs a text form (textOf).
var savedFlags = []string{"config", "feature-gates", "listen", "without"}

// restoreFlags sets unset flags to the values of the last start, and returns the values to store for the next one.
// flags.run calls it; the values are written to the data directory when the start is complete ([managerRunner.ready]).
func restoreFlags(w io.Writer, dir datadir.Dir, set *pflag.FlagSet) (map[string]string, error) {
	last, err := datadir.ReadFlags(dir)
	if err != nil {
		return nil, err
	}
	kept := map[string]string{}
	var taken []string
	for _, name := range savedFlags {
		flag := set.Lookup(name)
		if text, ok := last[name]; ok && !flag.Changed {
			if err := set.Set(name, text); err != nil {
				return nil, fault.New(fault.Invalid, "RememberedFlag", "--%s=%s, the flag of the last start in %s, cannot be used (%v): give --%s", name, text, dir, err, name).From(err)
			}
			flag.Annotations = map[string][]string{restored: nil}
			taken = append(taken, "--"+name+"="+text)
		}
		text, err := textOf(flag)
		if err != nil {
			return nil, err
		}
		if flag.Changed && text != defaultOf(flag) {
			kept[name] = text
		}
	}
	if len(taken) > 0 {
		_, err = fmt.Fprintf(w, "As at the last start: %s\n", strings.Join(taken, " "))
	}
	return kept, err
}

// restored is the annotation of flags that [restoreFlags] has set.
const restored = "restored"

// isGiven reports whether the user has set a flag, for isRunning. A restored flag is changed as well, but not given.
func isGiven(f *pflag.Flag) bool {
	_, isRestored := f.Annotations[restored]
	return f.Changed && !isRestored
}

// textOf returns the text that sets a flag to its value, independent of the working directory. The texts are stored in
// the data directory and read by later versions.
func textOf(f *pflag.Flag) (string, error) {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ","), nil
	}
	text := f.Value.String()
	if f.Name != "config" || text == "" {
		return text, nil
	}
	return filepath.Abs(text)
}

// defaultOf returns the text of a flag that is not set. Lists have another form in DefValue than in textOf.
func defaultOf(f *pflag.Flag) string {
	if _, ok := f.Value.(pflag.SliceValue); ok {
		return ""
	}
	return f.DefValue
}
