package cloudinit

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/payload"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/yamltext"
)

// diskSetup returns the partitions by device. cloud-init supports one entry per device.
func diskSetup(partitions []bootstrapv1.Partition) (*yamltext.Node, error) {
	var entries []yamltext.Entry
	seen := map[string]bool{}
	for _, p := range partitions {
		if seen[p.Device] {
			return nil, fault.New(fault.Invalid, payload.ReasonInvalid,
				"device %s is in diskSetup.partitions twice; describe its whole layout in one entry", p.Device)
		}
		seen[p.Device] = true
		entries = append(entries, entry(p.Device, yamltext.Map(
			entry("table_type", yamltext.Optional(p.TableType)),
			entry("layout", layout(p)),
			entry("overwrite", yamltext.OptionalBool(p.Overwrite)),
		)))
	}
	if entries == nil {
		return nil, nil
	}
	return yamltext.Map(entries...), nil
}

// layout returns true for one partition over the whole device, or a list of percentages with optional partition
// types.
func layout(p bootstrapv1.Partition) *yamltext.Node {
	if len(p.DiskLayout) == 0 {
		return yamltext.OptionalBool(p.Layout)
	}
	var items []*yamltext.Node
	for _, part := range p.DiskLayout {
		size := yamltext.Int(int64(part.Percentage))
		if part.PartitionType == "" {
			items = append(items, size)
			continue
		}
		items = append(items, yamltext.List(size, yamltext.String(partitionType(part.PartitionType))))
	}
	return yamltext.List(items...)
}

// partitionType returns cloud-init's code for a partition type. GUIDs are returned unchanged.
func partitionType(name string) string {
	codes := map[string]string{
		bootstrapv1.PartitionTypeLinux:         "83",
		bootstrapv1.PartitionTypeLinuxSwap:     "82",
		bootstrapv1.PartitionTypeLinuxRAID:     "fd",
		bootstrapv1.PartitionTypeLVM:           "8e",
		bootstrapv1.PartitionTypeFat32:         "0c",
		bootstrapv1.PartitionTypeNTFS:          "07",
		bootstrapv1.PartitionTypeLinuxExtended: "85",
	}
	if code, ok := codes[name]; ok {
		return code
	}
	return name
}

func fsSetup(filesystems []bootstrapv1.Filesystem) *yamltext.Node {
	var items []*yamltext.Node
	for _, f := range filesystems {
		items = append(items, yamltext.Map(
			entry("label", yamltext.Optional(f.Label)),
			entry("filesystem", yamltext.String(f.Filesystem)),
			entry("device", yamltext.String(f.Device)),
			entry("partition", yamltext.Optional(f.Partition)),
			entry("overwrite", yamltext.OptionalBool(f.Overwrite)),
			entry("replace_fs", yamltext.Optional(f.ReplaceFS)),
			entry("extra_opts", yamltext.Strings(f.ExtraOpts)),
		))
	}
	return yamltext.List(items...)
}

func mounts(in []bootstrapv1.MountPoints) *yamltext.Node {
	var items []*yamltext.Node
	for _, m := range in {
		items = append(items, yamltext.Strings(m))
	}
	return yamltext.List(items...)
}
