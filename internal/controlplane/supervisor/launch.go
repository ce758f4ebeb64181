package supervisor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// graceful is how long a control plane may take to stop before it is killed.
const graceful = 15 * time.Second

// launch starts the process of a control plane ("slipway control-plane run") so that it outlives this one. The
// supervision loop calls it. The process changes to the user, unless this is 0.
func launch(command []string, f processconfig.Folder, user int) (*childproc.Process, error) {
	command = append(slices.Clip(command), f.Config())
	if user != 0 {
		command = append(command, "--user", strconv.Itoa(user))
	}
	return childproc.Service{Command: command, Dir: string(f), Log: f.Log(), User: user}.Start()
}

// StopAll stops all control planes below root, including those that an earlier process of Slipway started. `slipway up`
// calls it when it stops, and `slipway down` does, because that process may have been killed.
func StopAll(ctx context.Context, root string) error {
	all, err := Inspect(root)
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	done := make(chan struct{}, len(all))
	for i, st := range all {
		go func() {
			defer func() { done <- struct{}{} }()
			errs[i] = StopFolder(ctx, processconfig.Folder(root+"/"+st.Name), graceful)
		}()
	}
	for range all {
		<-done
	}
	return errors.Join(errs...)
}
