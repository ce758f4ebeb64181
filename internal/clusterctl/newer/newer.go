// Package newer says whether there is a newer release of this program.
//
// Does: asks the Go module proxy for the releases of a module, once a day at most; what it answered is kept in a file.
//
// Owns: that file.
//
// Never: asks for a build that is no release, makes anyone wait long, or reports an error: a hint is not what was asked for.
//
// Read first: [Check].
package newer

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/blang/semver/v4"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
)

const (
	// valid is how long an answer is not asked for again, one that did not come neither.
	valid = 24 * time.Hour
	// patience is how long an answer may take.
	patience = 3 * time.Second
	// disable is the variable with which clusterctl is told not to ask, whatever its value.
	disable = "CLUSTERCTL_DISABLE_VERSIONCHECK"
)

// Check is what the answer depends on.
type Check struct {
	// Module is the path of the Go module, Current the version that runs.
	Module, Current string
	Getenv          func(string) string
	Now             func() time.Time
}

// answer is the content of the file.
type answer struct {
	CheckedAt time.Time `json:"checkedAt"`
	// Newest is the newest release; empty: none was found.
	Newest string `json:"newest,omitempty"`
}

// Release returns the newest release if it is newer than this program; empty: it is not, or that is not known.
func (c Check) Release(ctx context.Context) string {
	current, err := repository.ParseVersion(c.Current)
	if err != nil || !isRelease(current) || c.Getenv(disable) != "" {
		return ""
	}
	path := c.file()
	if path == "" {
		return "" // it would be asked for every time
	}
	now := c.Now()
	known, fresh := read(path, now)
	if !fresh {
		known = answer{CheckedAt: now, Newest: c.ask(ctx)}
		write(path, known)
	}
	newest, err := repository.ParseVersion(known.Newest)
	if err != nil || newest.LTE(current) {
		return ""
	}
	return known.Newest
}

// isRelease reports whether a version is one that was released, not a commit after it.
func isRelease(v semver.Version) bool {
	if len(v.Pre) == 0 {
		return v.Major+v.Minor+v.Patch > 0
	}
	return slices.Contains([]string{"alpha", "beta", "rc"}, v.Pre[0].VersionStr)
}

func (c Check) ask(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	newest, err := repository.NewestModule(ctx, c.Module, repository.Options{
		Variable: func(name string) (string, bool) { v := c.Getenv(name); return v, v != "" },
		Pause:    func(context.Context, time.Duration) error { return context.DeadlineExceeded }, // it is asked once
	})
	if err != nil {
		return ""
	}
	return newest
}

// file is where the answer is kept; empty: nowhere.
func (c Check) file() string {
	folder := c.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(folder) {
		home := c.Getenv("HOME")
		if home == "" {
			return ""
		}
		folder = filepath.Join(home, ".cache")
	}
	return filepath.Join(folder, "slipway", "newest-release.json")
}

func read(path string, now time.Time) (known answer, fresh bool) {
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &known) != nil {
		return answer{}, false
	}
	age := now.Sub(known.CheckedAt)
	return known, age >= 0 && age < valid
}

// write keeps the answer; where that is not possible, it is asked for again.
func write(path string, known answer) {
	data, err := json.Marshal(known)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = os.WriteFile(path, data, 0o600)
}
