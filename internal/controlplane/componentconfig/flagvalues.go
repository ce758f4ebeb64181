package componentconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form describes the valid values of a flag in the lists of flaglists.go. [FlagProblem] checks the values that tenants
// write with it.
type form struct {
	// description completes the sentence "the flag must be …".
	description string
	accepts     func(value string) bool
}

// boolean accepts true or false. The lists of flags (flaglists.go) call it and the other functions of this file.
func boolean() form { return oneOf("true", "false") }

func oneOf(values ...string) form {
	return form{"one of " + strings.Join(values, ", "), func(v string) bool { return slices.Contains(values, v) }}
}

// someOf accepts a comma-separated list of the given values.
func someOf(values ...string) form {
	return form{"a list of " + strings.Join(values, ", "), func(v string) bool {
		for part := range strings.SplitSeq(v, ",") {
			if !slices.Contains(values, part) {
				return false
			}
		}
		return true
	}}
}

// integer accepts an integer between two limits.
func integer(from, to int64) form {
	return form{fmt.Sprintf("a number from %d to %d", from, to), func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n >= from && n <= to
	}}
}

// fraction accepts a number between two limits.
func fraction(from, to float64) form {
	return form{fmt.Sprintf("a number from %g to %g", from, to), func(v string) bool {
		n, err := strconv.ParseFloat(v, 64)
		return err == nil && n >= from && n <= to
	}}
}

func duration(from, to time.Duration) form {
	return form{fmt.Sprintf("a duration from %s to %s", from, to), func(v string) bool {
		d, err := time.ParseDuration(v)
		return err == nil && d >= from && d <= to
	}}
}

// matching accepts a comma-separated list of at most 100 parts, each of which must match the whole pattern.
func matching(says, pattern string) form {
	return form{says, func(v string) bool {
		whole := regexp.MustCompile(`^(?:` + pattern + `)$`)
		parts := strings.Split(v, ",")
		return len(parts) <= 100 && !slices.ContainsFunc(parts, func(part string) bool { return !whole.MatchString(part) })
	}}
}

// featureGates accepts a list of feature gates.
func featureGates() form {
	return matching("feature gates as Name=true or Name=false, separated by commas", `[A-Za-z][A-Za-z0-9]{0,99}=(?:true|false)`)
}

// portRange accepts a range of unprivileged ports.
func portRange() form {
	return form{"a range of ports within 1024-65535, for example 30000-32767", func(v string) bool {
		low, high, found := strings.Cut(v, "-")
		first, err1 := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		return found && err1 == nil && err2 == nil && first >= 1024 && first <= last
	}}
}
