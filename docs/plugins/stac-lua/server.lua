-- The API of a catalogue on a server, such as "https://earth-search.aws.element84.com/v1", whose host plugin.toml names; `false`
-- is the small catalogue of this package.
return false
