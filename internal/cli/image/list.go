package image

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/moby/moby/client"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// imageListCommand returns the image list command, for [Command].
func imageListCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the node images in Docker",
		Args:  cobra.NoArgs,
	}
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		docker, err := client.New(client.FromEnv)
		if err != nil {
			return fmt.Errorf("connecting to Docker: %w", err)
		}
		defer func() { _ = docker.Close() }()
		images, err := nodeimage.List(cmd.Context(), docker)
		if err != nil {
			return err
		}
		rows := listRowsOf(images)
		return format.Print(e.Out, rows, func(w io.Writer) error { return listText(w, e.Now(), rows) })
	}
	return cmd
}

// listRow is an image in structured output. Scripts depend on the field names.
type listRow struct {
	Image             string    `json:"image"`
	ID                string    `json:"id"`
	KubernetesVersion string    `json:"kubernetesVersion"`
	ControlPlane      bool      `json:"controlPlane"`
	SizeBytes         int64     `json:"sizeBytes"`
	Created           time.Time `json:"created"`
}

// newImageRow converts an image to the structured output of "image list" and "image build".
func newImageRow(i nodeimage.Image) listRow {
	return listRow{i.Ref, i.ID, i.KubernetesVersion, i.ControlPlane, i.Size, i.Created}
}

func listRowsOf(images []nodeimage.Image) []listRow {
	rows := []listRow{}
	for _, i := range images {
		rows = append(rows, newImageRow(i))
	}
	return rows
}

func listText(w io.Writer, now time.Time, rows []listRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "There is no node image yet; \"slipway image build\" makes one.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "IMAGE\tKUBERNETES\tROLE\tSIZE\tAGE")
	for _, r := range rows {
		role := "worker"
		if r.ControlPlane {
			role = "control plane"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d MB\t%s\n", r.Image, r.KubernetesVersion, role, r.SizeBytes/1e6, duration.HumanDuration(now.Sub(r.Created)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printOutdated(w, now, rows)
}

// staleAge is the age from which an image is reported as outdated: Debian publishes fixes every few days.
const staleAge = 30 * 24 * time.Hour

// printOutdated lists the images that lack at least a month of Debian's fixes, and how to update them.
func printOutdated(w io.Writer, now time.Time, rows []listRow) error {
	for _, r := range rows {
		if now.Sub(r.Created) < staleAge {
			continue
		}
		flags := ""
		if r.ControlPlane {
			flags = " --control-plane"
		}
		if _, err := fmt.Fprintf(w, "\n%s lacks the fixes that Debian published in the last %s; \"slipway image build --refresh --kubernetes-version %s%s\" takes them up.\n",
			r.Image, duration.HumanDuration(now.Sub(r.Created)), r.KubernetesVersion, flags); err != nil {
			return err
		}
	}
	return nil
}
