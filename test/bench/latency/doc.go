// Package latency reads how long a manager's reconciles took.
//
// Does: reads histograms of controller-runtime from the Prometheus text format, subtracts one moment from another, and
// estimates quantiles as Prometheus does: linear within a bucket.
//
// Owns: nothing.
//
// Never: asks the manager; it is handed the text.
//
// Read first: [Parse], [Histogram.Quantile].
package latency
