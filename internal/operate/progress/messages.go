package progress

import (
	"regexp"
	"slices"
	"strings"
)

// join joins messages to one line, without those that are contained in another one. creation and [Deletion] make the
// details of their steps with it.
func join(parts []string) string {
	var out []string
	for i, part := range parts {
		again := slices.ContainsFunc(parts[:i], func(p string) bool { return strings.Contains(p, part) }) ||
			slices.ContainsFunc(parts[i+1:], func(p string) bool { return p != part && strings.Contains(p, part) })
		if part != "" && !again {
			out = append(out, part)
		}
	}
	return strings.Join(out, "; ")
}

// logFollows matches the end of a line in the condition messages of control planes and machines after which log lines
// follow, up to the next item. Packages hosted, local/machine and ssh/machines write these words, so they must agree.
var logFollows = regexp.MustCompile(`[;,] (its last lines|its last log lines):$`)

// flat converts a condition message to one line, without log lines. The details of steps and the errors of [creation]
// are made with it.
func flat(message string) string {
	var parts []string
	inLog := false
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(line)
		if inLog = inLog && !strings.HasPrefix(line, "* "); inLog {
			continue
		}
		inLog = logFollows.MatchString(line)
		if part := strings.TrimLeft(logFollows.ReplaceAllString(line, ""), "* "); part != "" {
			parts = append(parts, part)
		}
	}
	var out strings.Builder
	for i, part := range parts {
		switch {
		case i == 0:
		case strings.HasSuffix(parts[i-1], ":"):
			out.WriteString(" ")
		default:
			out.WriteString("; ")
		}
		out.WriteString(part)
	}
	return out.String()
}

// replicaCounts matches a line in the condition messages of MachineSets, MachineDeployments and Clusters with the
// replica counts of a group, which its step already displays. Their controllers write these words, so they must agree.
var replicaCounts = regexp.MustCompile(`^(\* )?(\d+ available replicas, at least \d+ required( \(spec\.replicas is \d+\))?$|Rolling out \d+ not up-to-date replicas$|Scaling (up|down) from \d+ to \d+ replicas$)`)

// withoutReplicaCounts removes the replica counts of a group from its message. Steps have their own counts, so
// builder.ownIssues (steps.go) calls it for messages.
func withoutReplicaCounts(message string) string {
	var out []string
	for _, line := range strings.Split(message, "\n") {
		if rest := strings.TrimSpace(replicaCounts.ReplaceAllString(line, "")); rest != "" {
			out = append(out, rest)
		}
	}
	return strings.Join(out, "\n")
}
