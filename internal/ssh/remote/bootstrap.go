package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
)

const (
	// formatIgnition is the format of bootstrap data that is not a cloud-config.
	formatIgnition = "ignition"
	// maxBootstrapLog limits the part of the log that is read, in bytes.
	maxBootstrapLog = 16 << 10
	// maxBootstrapTimeout limits the time for bootstrap data.
	maxBootstrapTimeout = 24 * time.Hour
	// maxRecordedChanges limits the files, users and groups of bootstrap data, which are recorded for cleaning.
	maxRecordedChanges = 1000
	// reasonUnrecordable means that cleaning could not undo what the bootstrap data changes; the kind is Invalid.
	reasonUnrecordable = "UnrecordableBootstrapData"
)

// Bootstrap is bootstrap data to run on a host.
type Bootstrap struct {
	// ClaimID is the claim in the record of the host.
	ClaimID string
	// Name is the instance ID for templates in the data. Hostname is the name of the host.
	Name, Hostname string
	ProviderID     string
	// Address is the address of the node.
	Address string
	// Format is "cloud-config", "ignition" or empty, which means cloud-config.
	Format string
	Data   []byte
	// Timeout after which the data is stopped and has failed.
	Timeout time.Duration
	// Offline hosts have no internet access, which errors of image pulls then mention.
	Offline bool
}

// BootstrapState is the state of bootstrap data on a host.
type BootstrapState string

// States of bootstrap data.
const (
	// BootstrapNone means that no data was started for the claim.
	BootstrapNone BootstrapState = "None"
	// BootstrapRunning means that it runs.
	BootstrapRunning BootstrapState = "Running"
	// BootstrapDone means that it created the sentinel file, also before a reboot.
	BootstrapDone BootstrapState = "Done"
	// BootstrapFailed means that it ended without the sentinel file.
	BootstrapFailed BootstrapState = "Failed"
)

// Progress is the progress of bootstrap data.
type Progress struct {
	State BootstrapState
	// Stage is the running command, such as "runcmd 3 kubeadm", or the service that is waited for.
	Stage string
	// Failure describes a failure that is not an exit status: "timeout", "reboot" or "stopped"; otherwise empty. The
	// SSHMachine controller compares these words.
	Failure string
	// ExitCode of the data when it has ended.
	ExitCode int
	// Log is the end of the output. It may contain secrets.
	Log []byte
}

// StartBootstrap starts the data as a systemd unit that is independent of the connection. The data is stored in memory
// on the host and deleted when it has ended. If data was started for the claim before, nothing happens. Data that
// cannot be used is a fault of kind Invalid. The SSHMachine controller calls it once the host is prepared.
func (h *Host) StartBootstrap(ctx context.Context, b Bootstrap) error {
	script, changes, err := bootstrapScript(b)
	if err != nil {
		return err
	}
	parameters := []parameter{{"CLAIM", b.ClaimID}, {"TIMEOUT", strconv.Itoa(int(b.Timeout.Seconds()))}}
	for _, f := range changes.Files {
		parameters = append(parameters, parameter{"FILE", f})
	}
	for _, u := range changes.Users {
		parameters = append(parameters, parameter{"USER", u.Name + " " + u.HomeDir})
	}
	for _, g := range changes.Groups {
		parameters = append(parameters, parameter{"GROUP", g})
	}
	for _, d := range changes.directories {
		parameters = append(parameters, parameter{"DIRECTORY", d})
	}
	for _, u := range changes.masked {
		parameters = append(parameters, parameter{"MASK", u})
	}
	_, err = h.run(ctx, call{script: "bootstrap-start", parameters: parameters, input: script})
	if err = claimConflict(h.target, err); err != nil {
		return fmt.Errorf("starting the bootstrap data: %w", err)
	}
	return nil
}

// bootstrapChanges are the changes that bootstrap data declares.
type bootstrapChanges struct {
	cloudinit.Changes
	// directories are created, or get another owner and mode. masked are units.
	directories, masked []string
}

// bootstrapScript returns the script for bootstrap data, and what it changes on the host, which is recorded for cleaning.
func bootstrapScript(b Bootstrap) (script []byte, changes bootstrapChanges, err error) {
	if !claimID.MatchString(b.ClaimID) || b.Timeout < time.Second || b.Timeout > maxBootstrapTimeout {
		return nil, changes, fault.New(fault.Bug, "InvalidBootstrap", "the bootstrap of host %s has no claim or no timeout", b.Hostname)
	}
	address, err := netip.ParseAddr(b.Address)
	if err != nil {
		return nil, changes, fault.New(fault.Invalid, "InvalidAddress", "%.80q is not the IP address of the node", b.Address).From(err)
	}
	data := cloudinit.BootstrapData{Value: b.Data, Format: b.Format}
	var links []string
	if b.Format == formatIgnition {
		if data.Value, err = cloudConfigOf(b.Data); err != nil {
			return nil, changes, err
		}
		if links, changes.directories, changes.masked, err = ignitionChanges(b.Data); err != nil {
			return nil, changes, err
		}
		data.Format = ""
	}
	node := cloudinit.NodeSettings{Name: b.Name, Hostname: b.Hostname, ProviderID: b.ProviderID, Address: address, Offline: b.Offline}
	rendered, err := cloudinit.RenderScript(data, node, b.Timeout)
	if err != nil {
		return nil, changes, err
	}
	if changes.Changes, err = cloudinit.DeclaredChanges(data, node); err != nil {
		return nil, changes, err
	}
	changes.Files = append(changes.Files, links...)
	for _, u := range changes.masked { // with a link to /dev/null
		changes.Files = append(changes.Files, "/etc/systemd/system/"+u)
	}
	if n := len(changes.Files) + len(changes.Users) + len(changes.Groups) + len(changes.directories); n > maxRecordedChanges {
		return nil, changes, fault.New(fault.Invalid, reasonUnrecordable, "the bootstrap data writes or creates %d files, users and groups, of which a host can record at most %d to remove them later", n, maxRecordedChanges)
	}
	for _, f := range slices.Concat(changes.Files, changes.directories) {
		if strings.ContainsAny(f, "\n\r\x00") {
			return nil, changes, fault.New(fault.Invalid, reasonUnrecordable, "the bootstrap data writes %.80q, whose path contains a line break", f)
		}
	}
	return rendered.Body, changes, nil
}

// BootstrapProgress returns the progress of the data that was started for a claim. The SSHMachine controller polls it.
func (h *Host) BootstrapProgress(ctx context.Context, claim string) (Progress, error) {
	if !claimID.MatchString(claim) {
		return Progress{}, fault.New(fault.Bug, "InvalidBootstrap", "%.40q is not a claim ID", claim)
	}
	out, err := h.run(ctx, call{script: "bootstrap-progress", parameters: []parameter{{"CLAIM", claim}}})
	if err = claimConflict(h.target, err); err != nil {
		return Progress{}, fmt.Errorf("reading the progress of the bootstrap data: %w", err)
	}
	return parseProgress(out)
}

// parseProgress parses NAME=value lines, an empty line, and the log.
func parseProgress(out []byte) (Progress, error) {
	head, log, _ := bytes.Cut(out, []byte("\n\n"))
	v := values(string(head)+"\n", "STATE", "STAGE", "EXIT", "FAILURE")
	p := Progress{State: BootstrapState(first(v, "STATE")), Stage: fact(first(v, "STAGE")), ExitCode: int(min(number(first(v, "EXIT")), 255))}
	if len(log) > maxBootstrapLog {
		log = log[len(log)-maxBootstrapLog:]
	}
	p.Log = log
	switch reason := first(v, "FAILURE"); reason {
	case "", "timeout", "reboot", "stopped":
		p.Failure = reason
	default:
		return Progress{}, errUnexpected("bootstrap-progress")
	}
	if !slices.Contains([]BootstrapState{BootstrapNone, BootstrapRunning, BootstrapDone, BootstrapFailed}, p.State) {
		return Progress{}, errUnexpected("bootstrap-progress")
	}
	return p, nil
}

// errUnexpected is the error for output that a script never writes.
func errUnexpected(script string) error {
	return fault.New(fault.Transient, "UnexpectedOutput", "the host returned an unexpected output of %s", script).From(errors.ErrUnsupported)
}
