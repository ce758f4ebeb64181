package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"regexp"

	"github.com/pkg/sftp"

	"github.com/slipwayhq/slipway/internal/fault"
)

// recordPath is the file of the record on the host.
const recordPath = "/etc/slipway/machine.json"

// maxRecord limits the size of a record, in bytes.
const maxRecord = 64 << 10

// Reasons of the faults about records.
const (
	// ReasonClaimedByAnother means that the host has the record of another claim; the kind is Conflict.
	ReasonClaimedByAnother = "ClaimedByAnother"
	// ReasonInvalidRecord means that the record on the host cannot be read; the kind is Invalid.
	ReasonInvalidRecord = "InvalidRecord"
)

// Exit statuses of scripts. The files in the folder scripts have the same numbers.
const (
	// exitConflict means that the host has the record of another claim.
	exitConflict = 3
	// exitUnknownNode means that nothing on the host shows what a claim changed there.
	exitUnknownNode = 5
	// exitKubelet means that a kubelet runs on a host without a record.
	exitKubelet = 6
	// exitUnrecorded means that a host without a record has the node of an earlier claim.
	exitUnrecorded = 7
)

// claimUnrecorded stands for a claim where the operator wants the node of another installer to be removed. The SSHHost
// controller passes it as the constant CleanUnrecorded of the API, so both must be equal.
const claimUnrecorded = "unrecorded"

// claimParameter returns the claim of the target for a script.
func (h *Host) claimParameter() (parameter, error) {
	if id := h.target.ClaimID; id != "" && id != claimUnrecorded && !claimID.MatchString(id) {
		return parameter{}, fault.New(fault.Bug, "InvalidClaim", "%.40q is not a claim ID", id)
	}
	return parameter{"CLAIM", h.target.ClaimID}, nil
}

// Record is the claim of a host, as recorded on it. It contains no secrets. The SSHHost controller writes it and copies
// it to the status of the SSHHost. Existing hosts have it, so its JSON names must not change.
type Record struct {
	// ClaimID is the random ID that the provider ID of the machine contains.
	ClaimID string `json:"claimID"`
	// Namespace, Name and Cluster of the machine are for readers of the file only.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// ManagementCluster identifies the management cluster that wrote the record, for readers only.
	ManagementCluster string `json:"managementCluster,omitempty"`
}

// claimID matches a claim ID.
var claimID = regexp.MustCompile(`^[a-z2-7]{26}$`)

// ReadRecord returns the record on the host, nil if there is none. A file that is not a record is a fault with reason
// ReasonInvalidRecord. The SSHHost controller calls it in each check and before it cleans.
func (h *Host) ReadRecord(ctx context.Context) (*Record, error) {
	return transfer(ctx, h, func(files *sftp.Client, _ func()) (*Record, error) {
		info, err := files.Stat(recordPath)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
			return nil, errNoRecord()
		}
		f, err := files.Open(recordPath)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
		if err != nil {
			return nil, err
		}
		return parseRecord(text)
	})
}

func parseRecord(text []byte) (*Record, error) {
	var r Record
	if len(text) > maxRecord || json.Unmarshal(text, &r) != nil || !claimID.MatchString(r.ClaimID) {
		return nil, errNoRecord()
	}
	r.Namespace, r.Name, r.Cluster, r.ManagementCluster = fact(r.Namespace), fact(r.Name), fact(r.Cluster), fact(r.ManagementCluster)
	return &r, nil
}

func errNoRecord() error {
	return fault.New(fault.Invalid, ReasonInvalidRecord, "%s on the host is not a record of Slipway; remove the file if nothing uses the host, and have the host cleaned if its condition PreflightPassed then requires it", recordPath)
}

// WriteRecord records a claim on the host, and the state of the host before anything changes. The record is created
// atomically. A record with the same claim ID is left unchanged; any other record is a fault with reason
// ReasonClaimedByAnother. The SSHHost controller calls it before a machine may use the host.
func (h *Host) WriteRecord(ctx context.Context, r Record) error {
	text, err := recordText(r)
	if err != nil {
		return err
	}
	_, err = h.run(ctx, call{script: "record-create", parameters: []parameter{{"CLAIM", r.ClaimID}}, input: text})
	return claimConflict(h.target, err)
}

func recordText(r Record) ([]byte, error) {
	if !claimID.MatchString(r.ClaimID) {
		return nil, fault.New(fault.Invalid, ReasonInvalidRecord, "%.40q is not a claim ID", r.ClaimID)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// DeleteRecord deletes the record of a claim. A missing record is no error; the record of another claim is a fault with
// reason ReasonClaimedByAnother. The SSHHost controller calls it at the end of a cleaning.
func (h *Host) DeleteRecord(ctx context.Context, claim string) error {
	if !claimID.MatchString(claim) {
		return fault.New(fault.Invalid, ReasonInvalidRecord, "%.40q is not a claim ID", claim)
	}
	_, err := h.run(ctx, call{script: "record-delete", parameters: []parameter{{"CLAIM", claim}}})
	return claimConflict(h.target, err)
}

// claimConflict returns the fault for a script that found another claim or another node on the host.
func claimConflict(t Target, err error) error {
	var failed *scriptError
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.code {
	case exitConflict:
		return fault.New(fault.Conflict, ReasonClaimedByAnother, "host %s has the record of another claim in %s", t.Address, recordPath)
	case exitUnknownNode:
		return fault.New(fault.Invalid, "NoInventory", "nothing on host %s shows what the claim changed there, but the host is not empty, so it is left unchanged; reinstall the host, or remove the node by hand", t.Address)
	case exitUnrecorded:
		return fault.New(fault.Invalid, "UnrecordedNode", "host %s has a node of Slipway whose record in %s is missing; "+remedyUnrecorded, t.Address, recordPath)
	case exitKubelet:
		return fault.New(fault.Invalid, "KubeletRunning", "a kubelet runs on host %s, which belongs to another cluster; "+remedyUnrecorded, t.Address)
	}
	return err
}
