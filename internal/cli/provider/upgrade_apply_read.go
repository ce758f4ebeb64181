package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/certificates"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/providerupgrade"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
)

// upgradeRun is one run of "upgrade apply": the inputs, and the changes and plans that read computes from them.
// [upgradeApplyFlags.run] creates it, and then calls read and carryOut (upgrade_apply.go).
type upgradeRun struct {
	flags  *upgradeApplyFlags
	env    term.Env
	client client.Client
	loader install.ProviderLoader
	kinds  []schema.GroupVersionKind

	changes        []providerupgrade.Change
	certManager    certificates.Upgrade
	customisations []providerupgrade.Customisation
	plan           install.Plan
	// notes are about providers that are not upgraded, and about extensions that serve deprecated hooks.
	notes []string
	// back is the plan for a rollback; noRollbackReason is the reason if there is none.
	back             install.Plan
	noRollbackReason string
}

// read reads and checks everything, and computes the plans. It writes nothing. [upgradeApplyFlags.run] calls it first.
func (w *upgradeRun) read(ctx context.Context) error {
	cluster, err := install.ReadCluster(ctx, w.client)
	if err != nil {
		return err
	}
	request := providerupgrade.UpgradeRequest{Contract: w.flags.contract, Named: w.flags.Named.Named()}
	targets, notes, err := providerupgrade.ChooseUpgrades(ctx, request, cluster, w.loader.Latest)
	if err != nil {
		return err
	}
	if err := w.readChanges(ctx, targets, cluster); err != nil {
		return err
	}
	if err := w.checkExtensions(ctx); err != nil {
		return err
	}
	if w.certManager, err = certificates.PlanUpgrade(ctx, w.client, w.kinds, w.loader.Config); err != nil {
		return err
	}
	settings := install.InstallOptions{
		Wait: w.flags.Wait, Builtin: w.certManager.Provisioner == certificates.Slipway, Before: w.certManager.Steps,
		UpdatedAt: w.env.Now().UTC().Format(time.RFC3339),
	}
	stored, err := providerupgrade.ReadStored(ctx, w.client, w.changes)
	if err != nil {
		return err
	}
	if w.plan, err = providerupgrade.PlanUpgrade(w.changes, stored, settings); err != nil {
		return err
	}
	if w.back, w.noRollbackReason, err = providerupgrade.PlanRollback(w.changes, settings); err != nil {
		return err
	}
	w.plan.Notes = append(append(w.plan.Notes, notes...), w.notes...)
	if len(w.certManager.Steps) > 0 {
		w.plan.Notes = append(w.plan.Notes, w.certManager.String())
	}
	if w.noRollbackReason != "" && w.flags.Wait && w.flags.rollback {
		w.plan.Notes = append(w.plan.Notes, fmt.Sprintf("If the providers do not become available, their former versions cannot be installed again: %s.", w.noRollbackReason))
	}
	w.customisations, err = providerupgrade.ReadCustomisations(ctx, w.client, w.changes)
	return err
}

// readChanges reads the components of both versions of each provider and its existing objects, and checks that the
// versions are compatible.
func (w *upgradeRun) readChanges(ctx context.Context, targets []providerupgrade.Target, cluster install.ManagementCluster) error {
	for _, t := range targets {
		next, err := w.item(ctx, t, t.To)
		if err != nil {
			return err
		}
		change := providerupgrade.Change{From: t.From, To: next}
		former, err := w.item(ctx, t, t.From.Version)
		switch fault.KindOf(err) {
		case fault.Gone, fault.Invalid: // without the former components, there is no rollback
		default:
			if err != nil {
				return err
			}
			change.Former = &former
		}
		w.changes = append(w.changes, change)
	}
	if err := w.readPresent(ctx); err != nil {
		return err
	}
	others := providerupgrade.OtherContracts{}
	for _, p := range cluster.Installed {
		if w.isChanged(p.Label()) {
			continue
		}
		contract, err := w.loader.InstalledContract(ctx, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.notes = append(w.notes, fmt.Sprintf("The contract of provider %s %s is unknown: %s.", p.Label(), p.Version, fault.UserMessage(err)))
			contract = ""
		}
		others[p.Label()] = contract
	}
	if len(w.changes) == 0 {
		return nil
	}
	return providerupgrade.CheckUpgrade(w.changes, others, cluster.Contract)
}

// checkExtensions rejects an upgrade of the core provider while extensions serve unknown hooks, because they would
// block their callers. Other providers call no extensions.
func (w *upgradeRun) checkExtensions(ctx context.Context) error {
	if !slices.ContainsFunc(w.changes, func(c providerupgrade.Change) bool { return c.From.Type == provider.Core }) {
		return nil
	}
	report, err := extensiontools.ReadCompatibility(ctx, w.client)
	if err != nil {
		return err
	}
	for _, handler := range report.Deprecated {
		w.notes = append(w.notes, "Extension handler of a deprecated hook: "+handler+".")
	}
	return report.Err()
}

func (w *upgradeRun) isChanged(label string) bool {
	for _, c := range w.changes {
		if c.From.Label() == label {
			return true
		}
	}
	return false
}

func (w *upgradeRun) item(ctx context.Context, t providerupgrade.Target, version string) (install.LoadedProvider, error) {
	ref := provider.Reference{Namespace: t.From.Namespace, Name: t.From.Name, Version: version}
	return w.loader.Load(ctx, install.Choice{Type: t.From.Type, Reference: ref}, t.From.Namespace)
}

// readPresent reads the existing objects of the providers. install.Objects returns the providers in the order of the
// changes.
func (w *upgradeRun) readPresent(ctx context.Context) error {
	found, err := install.Objects(ctx, w.client, w.kinds, providerupgrade.Records(w.changes))
	if err != nil {
		return err
	}
	for i := range found {
		w.changes[i].Present = found[i].Objects
	}
	return nil
}
