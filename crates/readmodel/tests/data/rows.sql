-- One ended instance, its user task and who completed it, a global listener, an instance that waits for a signal, the name of a
-- variable, and a resource, as the present format has them.
INSERT INTO place VALUES (1, 1, 1, 40, 17);
INSERT INTO process_definition VALUES (2251799813685249, 'order', 'Order', 1, NULL, 'order.bpmn', '<default>', 0, NULL);
INSERT INTO element VALUES (1, 2251799813685249, 'order', 'Order', 1, 1, 1, 0, 0);
INSERT INTO process_instance VALUES (2251799813685250, 2251799813685249, NULL, NULL, 2251799813685250, 1, 1700000000000, 1700000000500, 0, NULL, NULL);
INSERT INTO variable VALUES (2251799813685251, 2251799813685250, 2251799813685250, 'total', '1.0', '1');
INSERT INTO element VALUES (2, 2251799813685249, 'approve', NULL, 11, 0, 1, 0, 0);
INSERT INTO user_task VALUES (2251799813685253, 2251799813685250, 2251799813685252, 2, 1, 'ann', '[]', '[]', 1700000000100, 1700000000400, NULL, NULL, NULL, NULL, 50, '{}');
INSERT INTO audit_log(key, entity_key, entity_type, operation_type, result, category, time, actor_type, actor_id, process_definition_key, process_instance_key, element_instance_key, user_task_key, batch_operation_key) VALUES (9007199254740993, 2251799813685253, 1, 1, 0, 1, 1700000000400, 0, NULL, 2251799813685249, 2251799813685250, 2251799813685252, 2251799813685253, NULL);
INSERT INTO global_listener VALUES (2251799813685254, 'audit', 'audit', 3, '["completing"]', 0, 50, 0);
INSERT INTO global_listener_event VALUES (2251799813685254, 2);
INSERT INTO process_instance VALUES (2251799813685260, 2251799813685249, NULL, NULL, 2251799813685260, 0, 1700000000600, NULL, 0, NULL, NULL);
INSERT INTO element VALUES (3, 2251799813685249, 'wait', NULL, 5, 1, 0, 0, 0);
INSERT INTO element_instance VALUES (2251799813685261, 2251799813685260, 2251799813685260, 3, 0, 1700000000700, NULL, 0, NULL);
INSERT INTO signal_subscription VALUES (2251799813685262, 2251799813685260, 2251799813685261, 'wait', 'go');
INSERT INTO variable_name VALUES (2251799813685249, 'total');
INSERT INTO resource VALUES (2251799813685263, 'clean', 'clean.rpa', 1, NULL, 2251799813685264, '<default>');
