package render

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

// diskSetup returns the entry disk_setup of a cloud-config document: the partitions by device. cloud-init supports one
// entry per device. [renderCloudConfig] calls it, fsSetup and mounts.
func diskSetup(partitions []bootstrapv1.Partition) (*api.YAMLNode, error) {
	var entries []api.YAMLEntry
	seen := map[string]bool{}
	for _, p := range partitions {
		if seen[p.Device] {
			return nil, invalid("device %s is in diskSetup.partitions twice; describe its whole layout in one entry", p.Device)
		}
		seen[p.Device] = true
		entries = append(entries, entry(p.Device, api.YAMLMap(
			entry("table_type", api.YAMLOptional(p.TableType)),
			entry("layout", layout(p)),
			entry("overwrite", api.YAMLOptionalBool(p.Overwrite)),
		)))
	}
	if entries == nil {
		return nil, nil
	}
	return api.YAMLMap(entries...), nil
}

// layout returns true for one partition over the whole device, or a list of percentages with optional partition
// types.
func layout(p bootstrapv1.Partition) *api.YAMLNode {
	if len(p.DiskLayout) == 0 {
		return api.YAMLOptionalBool(p.Layout)
	}
	var items []*api.YAMLNode
	for _, part := range p.DiskLayout {
		size := api.YAMLInt(int64(part.Percentage))
		if part.PartitionType == "" {
			items = append(items, size)
			continue
		}
		items = append(items, api.YAMLList(size, api.YAMLString(partitionType(part.PartitionType))))
	}
	return api.YAMLList(items...)
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

// fsSetup returns the entry fs_setup of a cloud-config document. [renderCloudConfig] calls it.
func fsSetup(filesystems []bootstrapv1.Filesystem) *api.YAMLNode {
	var items []*api.YAMLNode
	for _, f := range filesystems {
		items = append(items, api.YAMLMap(
			entry("label", api.YAMLOptional(f.Label)),
			entry("filesystem", api.YAMLString(f.Filesystem)),
			entry("device", api.YAMLString(f.Device)),
			entry("partition", api.YAMLOptional(f.Partition)),
			entry("overwrite", api.YAMLOptionalBool(f.Overwrite)),
			entry("replace_fs", api.YAMLOptional(f.ReplaceFS)),
			entry("extra_opts", api.YAMLStrings(f.ExtraOpts)),
		))
	}
	return api.YAMLList(items...)
}

// mounts returns the entry mounts of a cloud-config document. [renderCloudConfig] calls it.
func mounts(in []bootstrapv1.MountPoints) *api.YAMLNode {
	var items []*api.YAMLNode
	for _, m := range in {
		items = append(items, api.YAMLStrings(m))
	}
	return api.YAMLList(items...)
}
