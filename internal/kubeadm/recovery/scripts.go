package recovery

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// surveyProgram prints the metrics of the etcd member on a node. The local provider runs the scripts in this file in a
// control plane machine when it carries out an [EtcdOrder]; for a manual rebuild,
// `slipway recover controlplane --manual` prints the commands for the user.
//
//go:embed survey.sh
var surveyProgram string

// commonProgram is the common beginning of the scripts that change an etcd member.
//
//go:embed common.sh
var commonProgram string

// rebuildProgram makes the etcd member on a node the only member of its cluster.
//
//go:embed rebuild.sh
var rebuildProgram string

// stageProgram prepares a data directory from the snapshot on a node.
//
//go:embed stage.sh
var stageProgram string

// restoreProgram replaces the member's data with the staged data.
//
//go:embed restore.sh
var restoreProgram string

// Prefixes of the folders that store the progress on the node, and of the lock files of running scripts. The ID of the
// order is appended. The paths must not change, because a script that is run again finds its progress there.
const (
	rebuildFolder, rebuildMark = "/var/lib/slipway/etcd-rebuild-", "/run/slipway/etcd-rebuild-"
	restoreFolder, restoreMark = "/var/lib/slipway/etcd-restore-", "/run/slipway/etcd-restore-"
)

// scriptVariables returns the shell variables at the beginning of each script. They are safe to insert, because
// [ParseOrder] accepts only an ID of digits, T and Z.
func scriptVariables(o EtcdOrder) string {
	folder, mark := rebuildFolder, rebuildMark
	if o.Step != Rebuild {
		folder, mark = restoreFolder, restoreMark
	}
	return "id=" + o.ID + "\nstate=" + folder + o.ID + "\nrunning=" + mark + o.ID + "\n"
}

// SurveyProgram returns a bash script whose output [ParseSurvey] reads.
func SurveyProgram() string { return surveyProgram }

// ParseSurvey parses the output of the script. Only numbers are used, because the tenant controls the node.
func ParseSurvey(out string) (MemberState, error) {
	found := map[string]float64{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && n < math.MaxInt64 {
			found[name] = n
		}
	}
	leader, ok := found["etcd_server_has_leader"]
	if !ok {
		return MemberState{}, fmt.Errorf("etcd on this node does not report whether it has a leader")
	}
	return MemberState{
		Leader: leader == 1, Revision: int64(found["etcd_debugging_mvcc_current_revision"]), Index: int64(found["etcd_server_proposals_committed_total"]),
	}, nil
}

// Program returns a bash script that makes the etcd member on a node the only member of its cluster, once per order
// ID, either by a [Rebuild] or by a [Restore] of staged data. The script can be interrupted at any point and run
// again, because it records its progress on the node. A second instance running at the same time exits immediately.
func Program(o EtcdOrder) string {
	if o.Step == Restore {
		return scriptVariables(o) + commonProgram + restoreProgram
	}
	return scriptVariables(o) + commonProgram + rebuildProgram
}

// ProgressProgram returns a sh script that prints the progress of [Program]: "done", "failed" with the reason and the
// last lines of the log, "running", or "none" if it neither runs nor has a result. The LocalMachine controller runs it
// on the container of the machine until it prints a result.
func ProgressProgram(o EtcdOrder) string {
	return scriptVariables(o) + `
if [ -e "$state/result" ]; then cat "$state/result"; tail -n 10 "$state/log" 2>/dev/null || true
elif [ -e "$running" ] && ! flock -n "$running" true; then echo running
else echo none; fi`
}

// Files that [StageProgram] needs in the folder from [StageFolder]: the snapshot, and the slipway binary that
// restores it.
const (
	SnapshotFile   = "snapshot.db"
	RestoreCommand = "slipway"
)

// StageFolder returns the folder for the staged data of an order on the node. The Local provider copies the snapshot
// and the binary there before it runs [StageProgram].
func StageFolder(o EtcdOrder) string { return restoreFolder + o.ID }

// StageProgram returns a bash script that prepares a data directory from the snapshot next to the data of the member.
// It exits with status 3 and prints the reason if that is not possible. It can be interrupted at any point and run
// again.
func StageProgram(o EtcdOrder) string { return scriptVariables(o) + stageProgram }

// StagedProgram returns a sh script that prints "staged" if [StageProgram] has finished.
func StagedProgram(o EtcdOrder) string {
	return scriptVariables(o) + `if [ -e "$state/staged" ]; then echo staged; else echo none; fi`
}
