package provider

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// planOutput is the structured output of the commands that execute or print an installation plan: init, delete,
// "upgrade apply". Scripts depend on the field names.
type planOutput struct {
	Steps []install.StepOutput `json:"steps"`
	Notes []string             `json:"notes,omitempty"`
	// Done is true if the plan was executed.
	Done bool `json:"done"`
}

// printPlan prints a plan as text, for --dry-run. init, delete and "upgrade apply" call it.
func printPlan(w io.Writer, p install.Plan) error {
	for _, note := range p.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	if len(p.Steps) == 0 {
		_, err := fmt.Fprintln(w, "There is nothing to do.")
		return err
	}
	_, err := fmt.Fprintln(w, strings.Join(p.Lines(), "\n"))
	return err
}
