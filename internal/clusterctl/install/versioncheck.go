package install

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/version"
)

const (
	// cacheTTL is the validity period of a cached result, including a failed query.
	cacheTTL = 24 * time.Hour
	// queryTimeout is the timeout of the query.
	queryTimeout = 3 * time.Second
	// disableVariable is the variable that disables the check in clusterctl, with any value.
	disableVariable = "CLUSTERCTL_DISABLE_VERSIONCHECK"
)

// VersionCheck has the inputs of the check for a newer release of Slipway, which "slipway version" makes.
type VersionCheck struct {
	// Module is the path of the Go module, Current the running version.
	Module, Current string
	Getenv          func(string) string
	Now             func() time.Time
}

// cachedResult is the content of the cache file.
type cachedResult struct {
	CheckedAt time.Time `json:"checkedAt"`
	// Newest is the newest release; empty if none was found.
	Newest string `json:"newest,omitempty"`
}

// Release returns the newest release if it is newer than this program; empty if it is not, or is unknown.
func (c VersionCheck) Release(ctx context.Context) string {
	current, err := version.ParseSemantic(c.Current)
	if err != nil || !isRelease(current) || c.Getenv(disableVariable) != "" {
		return ""
	}
	path := c.file()
	if path == "" {
		return "" // without a cache every command would query the proxy
	}
	now := c.Now()
	known, fresh := read(path, now)
	if !fresh {
		known = cachedResult{CheckedAt: now, Newest: c.query(ctx)}
		write(path, known)
	}
	newest, err := version.ParseSemantic(known.Newest)
	if err != nil || newest.Compare(current) <= 0 {
		return ""
	}
	return known.Newest
}

// isRelease reports whether a version is a release, rather than a later commit.
func isRelease(v version.Version) bool {
	if len(v.Pre) == 0 {
		return v.Major+v.Minor+v.Patch > 0
	}
	return slices.Contains([]string{"alpha", "beta", "rc"}, v.Pre[0].VersionStr)
}

func (c VersionCheck) query(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	newest, err := repository.NewestModule(ctx, c.Module, repository.Options{
		Variable: func(name string) (string, bool) { v := c.Getenv(name); return v, v != "" },
		Pause:    func(context.Context, time.Duration) error { return context.DeadlineExceeded }, // no retries
	})
	if err != nil {
		return ""
	}
	return newest
}

// file returns the path of the cache file; empty if there is none.
func (c VersionCheck) file() string {
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

func read(path string, now time.Time) (known cachedResult, fresh bool) {
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &known) != nil {
		return cachedResult{}, false
	}
	age := now.Sub(known.CheckedAt)
	return known, age >= 0 && age < cacheTTL
}

// write caches the result. Errors are ignored; then the next command queries again.
func write(path string, known cachedResult) {
	data, err := json.Marshal(known)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	_ = os.WriteFile(path, data, 0o600)
}
