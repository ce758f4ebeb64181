package image

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
)

// versionRow is a Kubernetes version in structured output. "versions add", "versions import" and "versions list" print
// it; scripts depend on the field names.
type versionRow struct {
	versions.Release `json:",inline"`
	// NodeImage is the size of its node image in bytes; 0: there is none, or Docker is unreachable.
	NodeImage int64 `json:"nodeImageSizeBytes,omitempty"`
	// Users are the hosted control planes that run it, as NAMESPACE/NAME.
	Users []string `json:"usedBy,omitempty"`
}

// versionsListCommand returns the versions list command, for [VersionsCommand].
func versionsListCommand(e term.Env) *cobra.Command {
	h := versionsOptions{env: e}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List Kubernetes versions and the control planes that use them",
		Args:  cobra.NoArgs,
	}
	h.flag(cmd)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, dir, err := h.store()
		if err != nil {
			return err
		}
		all, err := s.List()
		if err != nil {
			return err
		}
		planes, err := supervisor.Inspect(dir.Planes())
		if err != nil {
			return err
		}
		rows := rowsOf(all, planes, nodeImages(cmd.Context()))
		return format.Print(e.Out, rows, func(w io.Writer) error { return printVersions(w, rows, e.Now()) })
	}
	return cmd
}

// nodeImages returns the sizes of the node images by version, or nothing if Docker is unreachable.
func nodeImages(ctx context.Context) map[string]int64 {
	out := map[string]int64{}
	c, err := docker()
	if err != nil {
		return out
	}
	defer func() { _ = c.Close() }()
	images, err := nodeimage.List(ctx, c)
	if err != nil {
		return out
	}
	for _, i := range images {
		if !i.ControlPlane {
			out[i.KubernetesVersion] = i.Size
		}
	}
	return out
}

func rowsOf(all []versions.Release, planes []supervisor.Status, images map[string]int64) []versionRow {
	rows := []versionRow{}
	for _, r := range all {
		rows = append(rows, versionRow{Release: r, NodeImage: images[r.Version], Users: usersOf(r.Version, planes)})
	}
	return rows
}

// usersOf returns the control planes that run a version or are about to. "versions remove" passes them to the store,
// which removes no version in use. A name has the form NAMESPACE.NAME.
func usersOf(version string, planes []supervisor.Status) []string {
	var out []string
	for _, p := range planes {
		if p.Version == version || p.DesiredVersion == version {
			out = append(out, strings.Replace(p.Name, ".", "/", 1))
		}
	}
	slices.Sort(out)
	return out
}

func printVersions(w io.Writer, rows []versionRow, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "VERSION\tCONTROL PLANE\tNODE IMAGE\tADDED\tUSED BY")
	for _, r := range rows {
		plane, image, added := megabytes(r.Size), "-", "-"
		if r.Included {
			plane = "included"
		}
		if r.Problem != "" {
			plane = "not usable"
		}
		if r.NodeImage > 0 {
			image = megabytes(r.NodeImage)
		}
		if !r.Added.IsZero() {
			added = duration.HumanDuration(now.Sub(r.Added))
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Version, plane, image, added, formatUsers(r.Users))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			_, _ = fmt.Fprintf(w, "\n%s: %s\n", r.Version, r.Problem)
		}
	}
	return nil
}

// formatUsers formats a list of control planes and shortens it if necessary.
func formatUsers(all []string) string {
	const most = 3
	switch {
	case len(all) == 0:
		return "-"
	case len(all) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
	}
	return strings.Join(all, ", ")
}
