package backend

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/redact"
)

// reasonNotStaged: a snapshot could not be restored to a data directory on the machine.
const reasonNotStaged = "SnapshotNotStaged"

// self is the executable of this process, even if its file was replaced since the start.
const self = "/proc/self/exe"

// Stage implements EtcdRecovery. The LocalMachine controller calls it in a background job when etcd is restored from a
// snapshot. It copies this program onto the machine to restore the snapshot, because the machine has no tool for that.
func (m EtcdMembers) Stage(ctx context.Context, ref Ref, order recovery.EtcdOrder, content func(io.Writer) error) error {
	folder := recovery.StageFolder(order)
	if err := m.send(ctx, ref, folder+"/"+recovery.SnapshotFile, content); err != nil {
		return fmt.Errorf("sending the snapshot to machine %s: %w", ref.Name, err)
	}
	if err := m.send(ctx, ref, folder+"/"+recovery.RestoreCommand, copySelf); err != nil {
		return fmt.Errorf("sending the restore script to machine %s: %w", ref.Name, err)
	}
	code, out, err := m.Pipe(ctx, ref, "exec bash -s", strings.NewReader(recovery.StageProgram(order)))
	if err == nil && code != 0 {
		err = fault.New(fault.Invalid, reasonNotStaged, "The snapshot cannot be restored on machine %s: %s", ref.Name, redact.Tail(out, logBytes))
	}
	return err
}

func (m EtcdMembers) Staged(ctx context.Context, ref Ref, order recovery.EtcdOrder) (bool, error) {
	out, err := m.Run(ctx, ref, recovery.StagedProgram(order), nil)
	if err != nil {
		return false, fmt.Errorf("checking whether the snapshot is staged: %w", err)
	}
	return strings.TrimSpace(out) == "staged", nil
}

func copySelf(to io.Writer) error {
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	_, err = io.Copy(to, from)
	return err
}

// send writes a file on a machine atomically.
func (m EtcdMembers) send(ctx context.Context, ref Ref, file string, content func(io.Writer) error) error {
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(content(w)) }()
	defer func() { _ = r.Close() }() // stops content if the machine does not read everything
	code, out, err := m.Pipe(ctx, ref, fmt.Sprintf(`set -e; umask 077; mkdir -p %s; cat >%s.new`, path.Dir(file), file), r)
	if err != nil {
		return err
	}
	if code != 0 {
		return fault.New(fault.Invalid, reasonNotStaged, "It cannot be written there: %s", redact.Tail(out, logBytes))
	}
	_, err = m.Run(ctx, ref, fmt.Sprintf(`chmod 700 %[1]s.new && mv %[1]s.new %[1]s`, file), nil)
	return err
}
