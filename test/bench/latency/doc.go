// Package latency says how long things took: a manager's reconciles, or anything else.
//
// Does: reads histograms of controller-runtime from the Prometheus text format, subtracts one moment from another, and
// estimates quantiles as Prometheus does: linear within a bucket. Of single times it finds them exactly.
//
// Never: asks the manager; it is handed the text.
//
// Read first: [Parse], [Histogram.Quantile].
package latency
