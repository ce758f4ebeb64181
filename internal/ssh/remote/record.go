package remote

import (
	"bytes"
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

// exitConflict is the exit status of scripts when the host has the record of another claim.
const exitConflict = 3

// Record is the claim of a host, as recorded on it. It contains no secrets.
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
// ReasonInvalidRecord.
func (h *Host) ReadRecord(ctx context.Context) (record *Record, err error) {
	err = h.transfer(ctx, func(files *sftp.Client) error {
		f, err := files.Open(recordPath)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
		if err != nil {
			return err
		}
		record, err = parseRecord(text)
		return err
	})
	return record, err
}

func parseRecord(text []byte) (*Record, error) {
	var r Record
	if len(text) > maxRecord || json.Unmarshal(text, &r) != nil || !claimID.MatchString(r.ClaimID) {
		return nil, fault.New(fault.Invalid, ReasonInvalidRecord, "%s on the host is not a record of Slipway; remove the file if the host is free", recordPath)
	}
	r.Namespace, r.Name, r.Cluster, r.ManagementCluster = fact(r.Namespace), fact(r.Name), fact(r.Cluster), fact(r.ManagementCluster)
	return &r, nil
}

// WriteRecord records a claim on the host, and the state of the host before anything changes. The record is created
// atomically. A record with the same claim ID is left unchanged; any other record is a fault with reason
// ReasonClaimedByAnother.
func (h *Host) WriteRecord(ctx context.Context, r Record) error {
	text, err := recordText(r)
	if err != nil {
		return err
	}
	_, err = h.run(ctx, call{script: "record-create", parameters: []parameter{{"CLAIM", r.ClaimID}}, input: bytes.NewReader(text)})
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
// reason ReasonClaimedByAnother.
func (h *Host) DeleteRecord(ctx context.Context, claim string) error {
	if !claimID.MatchString(claim) {
		return fault.New(fault.Invalid, ReasonInvalidRecord, "%.40q is not a claim ID", claim)
	}
	_, err := h.run(ctx, call{script: "record-delete", parameters: []parameter{{"CLAIM", claim}}})
	return claimConflict(h.target, err)
}

// claimConflict returns the fault for a script that found the record of another claim.
func claimConflict(t Target, err error) error {
	var failed *scriptError
	if errors.As(err, &failed) && failed.code == exitConflict {
		return fault.New(fault.Conflict, ReasonClaimedByAnother, "host %s has the record of another claim in %s", t.Address, recordPath)
	}
	return err
}
