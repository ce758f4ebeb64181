package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/version"
)

// Stability is the stability level of a hook version.
type Stability int

// The stability levels, which follow from the name of the version.
const (
	Alpha Stability = iota
	Beta
	GA
)

// String returns "alpha", "beta" or "GA".
func (s Stability) String() string { return [...]string{"alpha", "beta", "GA"}[s] }

var versionPattern = regexp.MustCompile(`^v[1-9][0-9]*(?:(alpha|beta)[1-9][0-9]*)?$`)

// StabilityOf returns the stability of a version such as "v1beta2"; ok is false if it is not a valid version.
func StabilityOf(version string) (Stability, bool) {
	parts := versionPattern.FindStringSubmatch(version)
	switch {
	case parts == nil:
		return Alpha, false
	case parts[1] == "alpha":
		return Alpha, true
	case parts[1] == "beta":
		return Beta, true
	}
	return GA, true
}

// Window is the minimum support period of a deprecated version: the longer of the two applies.
type Window struct {
	Months   int
	Releases int
}

// WindowOf returns the window of a stability.
func WindowOf(s Stability) Window {
	return [...]Window{
		Alpha: {},
		Beta:  {Months: 6, Releases: 2},
		GA:    {Months: 12, Releases: 3},
	}[s]
}

// Release is a minor release, such as {Minor: "v1.14", Date: "2026-08-01"}.
type Release struct {
	// Minor is the minor version, "v<major>.<minor>".
	Minor string
	// Date is the actual or planned release date, "YYYY-MM-DD".
	Date string
}

// Deprecation describes the deprecation of a hook version.
type Deprecation struct {
	// Since is the release that deprecated the version.
	Since Release
	// ReplacedBy is the version to use instead. It must be in the same catalog, newer, and at least as stable. It is
	// empty if the hook is removed without replacement, which is allowed for an alpha version, and for a version that
	// is not the newest of its stability.
	ReplacedBy string
	// Removal is the release that removes the version, if it is known.
	Removal *Release
}

// Advice describes what an author should do, such as "use v1beta1 instead; it is removed in v1.17".
func (d Deprecation) Advice() string {
	advice := "the hook goes without a replacement"
	if d.ReplacedBy != "" {
		advice = "use " + d.ReplacedBy + " instead"
	}
	if d.Removal != nil {
		return advice + "; it is removed in " + d.Removal.Minor
	}
	return advice
}

// check validates the deprecation by the deprecation policy.
func (d Deprecation) check(s Stability) error {
	minor, date, err := d.Since.parse()
	if err != nil {
		return fmt.Errorf("deprecated since: %w", err)
	}
	if d.Removal == nil {
		return nil
	}
	end, last, err := d.Removal.parse()
	if err != nil {
		return fmt.Errorf("removal: %w", err)
	}
	window := WindowOf(s)
	if end-minor < window.Releases {
		return fmt.Errorf("removed %d releases after its deprecation, %s versions are kept for %d", end-minor, s,
			window.Releases)
	}
	if earliest := date.AddDate(0, window.Months, 0); last.Before(earliest) {
		return fmt.Errorf("removed on %s, %s versions are kept for %d months, until %s",
			d.Removal.Date, s, window.Months, earliest.Format(time.DateOnly))
	}
	return nil
}

// checkReplacement validates the replacement of a deprecated version, given all versions of its hook.
func (d Deprecation) checkReplacement(id ID, versions []string) error {
	own, _ := StabilityOf(id.Version)
	if d.ReplacedBy == "" {
		newest := slices.IndexFunc(versions, func(v string) bool {
			s, _ := StabilityOf(v)
			return s == own
		})
		if d.Removal != nil && own > Alpha && versions[newest] == id.Version {
			return fmt.Errorf("removed without a replacement, and it is the newest %s version", own)
		}
		return nil
	}
	if !slices.Contains(versions, d.ReplacedBy) {
		return fmt.Errorf("replaced by %q, which is no version of the hook", d.ReplacedBy)
	}
	if version.CompareKubeAwareVersionStrings(d.ReplacedBy, id.Version) <= 0 { // the order starts with the least stable
		return fmt.Errorf("replaced by %s, which is not newer, or less stable", d.ReplacedBy)
	}
	return nil
}

var minorPattern = regexp.MustCompile(`^v([0-9]+)\.([0-9]+)$`)

// parse returns the ordinal number of the release, and its date.
func (r Release) parse() (int, time.Time, error) {
	parts := minorPattern.FindStringSubmatch(r.Minor)
	if parts == nil {
		return 0, time.Time{}, fmt.Errorf("release %q: want v<major>.<minor>", r.Minor)
	}
	minor, err := strconv.Atoi(parts[2])
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("release %q: %w", r.Minor, err)
	}
	date, err := time.Parse(time.DateOnly, r.Date)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("release %s: date %q is not YYYY-MM-DD", r.Minor, r.Date)
	}
	return minor, date, nil
}
