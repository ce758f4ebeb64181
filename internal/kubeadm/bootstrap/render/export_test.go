package render

// Tests outside of the package use these private names.
var RenderCloudConfig = renderCloudConfig
