-- Loses: all webhook endpoints with their secrets, and what workers saw of them.
DROP TABLE webhook_endpoint_health, webhook_endpoint_secrets, webhook_endpoint_revision, webhook_endpoints;
